// One row's draw on the CPU.
#pragma once

#include <cstdint>
#include <span>

#include "ops/cpu/vector_kernels.h"
#include "ops/sample.h"

namespace shoal::ops::cpu {

// Settings are checked by the caller. Works in `scratch` (64-byte aligned, scratch_bytes) and allocates
// nothing.
//
// Kept are the longest run of ranks (logit descending, id ascending) whose probabilities sum to at most
// top_p, at least rank 0. The sums are exact (VectorKernels::softmax_weights), so the run is found without
// sorting: take the entries within a growing distance of the maximum until they hold top_p, then select among
// them as quickselect does, by weight.
class RowSampler {
 public:
  static int64_t scratch_bytes(int64_t vocab);
  RowSampler(int64_t vocab, void* scratch);

  int32_t draw(const float* logits, const SampleRow& row);
  SamplingDistribution distribution(const float* logits, const SampleRow& row);

 private:
  void prepare(const float* logits, const SampleRow& row);
  void find_maximum();
  void keep(const SampleRow& row);
  void keep_within(double budget, int64_t most);
  int64_t select(int64_t count, double budget, int64_t most);
  void apply_temperature(float temperature);
  int32_t rank_zero();

  const VectorKernels& kernels_;
  int64_t vocab_;
  uint64_t* keys_;  // [vocab] candidates as (logit, id), ordered as ranks are
  float* logits_;   // [vocab] penalised and masked
  float* weights_;  // [vocab] exp(logit - maximum), rounded; later those of the kept, after temperature
  int32_t* ids_;    // [vocab] candidates, then kept, by rising id
  float maximum_ = 0;
  int64_t kept_ = 0;
};

}  // namespace shoal::ops::cpu
