// Drawing a token from logits, on the CPU. The draws of models are ops of their own (draw.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/context.h"

namespace shoal::ops {

// How one row is sampled (dual_ar/MODEL.md 5). The noise of entry i is a pure function of (seed, frame,
// codebook, i) (sampling_noise.h), and values are f32: equal logits give equal tokens on every machine.
// Probabilities of the top-p rule are rounded to multiples of 2^-35 of the largest one, so that their sums
// are exact and no order of summation, hence no way of finding the kept entries, can change which are kept.
struct SampleRow {
  float temperature = 0.8f;  // divides the logits, floor 1e-5
  float top_p = 0.8f;        // keep rank 0 and every rank whose inclusive cumulative probability is <= top_p
  int32_t top_k = 0;         // additionally keep only ranks < top_k; 0: no limit
  float repetition_penalty = 1.0f;
  std::span<const int32_t>
      penalised;  // ids whose logits are penalised once each (duplicates allowed), before all else
  // Only ids in [allowed_begin, allowed_end] or equal to allowed_extra may be drawn; allowed_end < 0: every
  // id.
  int32_t allowed_begin = 0, allowed_end = -1, allowed_extra = -1;
  uint64_t seed = 0;
  uint32_t frame = 0;     // index of the frame within its utterance
  uint32_t codebook = 0;  // which draw of the frame: 0 semantic, 1.. residual; others are named by the model
};

// Replaces each row's choice by argmax: kept = rank 0 only.
constexpr float kGreedyTopP = 0.0f;

// The entries that may be drawn, by rising id, and their probabilities (after the temperature).
struct SamplingDistribution {
  std::vector<int32_t> ids;
  std::vector<float> probabilities;
};

// What sample draws from, for tests and diagnostics: host memory, CPU only. Errors as sample.
SamplingDistribution sampling_distribution(std::span<const float> logits, const SampleRow& row);

constexpr int64_t kMostVocabulary = 1 << 18;

// tokens[row] = the id sampled from logits[row]: argmax of p_i / q_i, the lowest id on ties. logits: f32
// [rows, vocab <= kMostVocabulary] (rows may be strided), left unchanged. Throws Error(invalid_argument) for
// settings out of range, ids outside the vocabulary, and logits that are NaN or +inf or leave no candidate.
void sample(Context& ctx, TensorView logits, std::span<const SampleRow> rows, std::span<int32_t> tokens);

}  // namespace shoal::ops
