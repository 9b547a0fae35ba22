// One row's draw on the CPU.
#pragma once

#include <cstdint>
#include <span>

#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/sample.h"

namespace shoal::ops::cpu {

// The caller checks the settings. Works in `scratch` (64-byte aligned, scratch_bytes) and allocates nothing.
//
// Keeps the longest run of ranks (logit descending, id ascending) whose probabilities sum to at most top_p,
// at least rank 0. The sums are exact (VectorKernels::softmax_weights), so the run's least logit is found
// without sorting: take the entries within a growing distance of the maximum until they hold top_p, then
// search among them by weight, like quickselect. Only the kept entries are sampled.
class RowSampler {
 public:
  static int64_t scratch_bytes(int64_t vocab);
  RowSampler(int64_t vocab, void* scratch);

  int32_t draw(const float* logits, const SampleRow& row);
  SamplingDistribution distribution(const float* logits, const SampleRow& row);

 private:
  // How much of the distribution may be kept.
  struct Limits {
    double weight;
    int64_t count;
    bool allow(double weights, int64_t entries) const { return weights <= weight && entries <= count; }
  };

  void prepare(const float* logits, const SampleRow& row);
  void find_maximum();
  void keep(const SampleRow& row);
  void keep_within(const Limits& limits);
  void gather_candidates(const Limits& limits);
  void cut_at(float logit, int64_t kept, int64_t equal);
  float weight_of(float logit) const;
  int32_t rank_zero();

  const VectorKernels& kernels_;
  int64_t vocab_;
  float* logits_;   // [count_, then -inf up to a multiple of 16] of ids first_ .., penalised and masked
  float* weights_;  // exp(logit - maximum), rounded
  WeightedLogits candidates_;  // among which the least kept logit is searched
  int32_t* blocks_;            // of four ids, from first_ on
  int64_t first_ = 0, count_ = 0;
  float maximum_ = 0;
  float least_ = 0;  // kept are the logits_ that are not below
};

}  // namespace shoal::ops::cpu
