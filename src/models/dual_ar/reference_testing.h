// The forward pass in plain loops and double precision, written only from the formulas of MODEL.md: it uses
// no op.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/dual_ar/config.h"
#include "models/dual_ar/random_model_testing.h"

namespace shoal::dual_ar::testing {

using Matrix = std::vector<std::vector<double>>;  // [rows][values]

struct ReferenceSlow {
  Matrix embed;                // [columns, slow.dim]
  std::vector<Matrix> layers;  // block outputs
  Matrix logits;               // [columns, vocab]
};

// A whole sequence, from position 0.
ReferenceSlow reference_slow(const Config& config, const NamedWeights& weights,
                             std::span<const int32_t> columns);

// Logits of one row of layer outputs: [vocab].
std::vector<double> reference_head(const Config& config, const NamedWeights& weights,
                                   const std::vector<double>& hidden);

struct ReferenceFast {
  std::vector<double> fast_in;  // [fast.dim]
  std::vector<Matrix> layers;   // block outputs, [num_codebooks, fast.dim] each
  Matrix logits;                // [num_codebooks, codebook_size]: row p is what position p predicts
};

// One frame after `hidden` (the slow transformer's last row), its codes given: [num_codebooks].
ReferenceFast reference_fast(const Config& config, const NamedWeights& weights,
                             const std::vector<double>& hidden, std::span<const int32_t> codes);

}  // namespace shoal::dual_ar::testing
