// From names to weights: every tensor of a DualAR checkpoint is named here once, with its shape
// (MODEL.md 7).
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "models/dual_ar/block.h"
#include "models/dual_ar/config.h"
#include "ops/context.h"
#include "ops/packed_matrix.h"
#include "tensor/formats.h"
#include "tensor/tensor.h"
#include "weights/source.h"

namespace shoal::dual_ar {

// The head over the hidden state (MODEL.md 3). Its rows are those of its three parts, in order.
struct Head {
  // On a CPU beside quantised layers: the tokens before and after all that are speech or its end, in the
  // layers' format, because they are much of what a step reads and seldom drawn. Else without outputs.
  ops::PackedMatrix text_before, text_after;
  ops::PackedMatrix speech;  // and all else; in the operands' dtype
  bool semantic = false;     // its rows: the semantic range, then <|im_end|>; else the vocabulary

  std::array<const ops::PackedMatrix*, 3> parts() const { return {&text_before, &speech, &text_after}; }
  int64_t outputs() const { return text_before.outputs + speech.outputs + text_after.outputs; }
  int64_t bytes() const { return text_before.bytes() + speech.bytes() + text_after.bytes(); }
};

struct Weights {
  Tensor text_embedding;      // f32, bf16 or f16 [vocab, slow.dim]
  Tensor codebook_embedding;  // same dtype [num_codebooks * codebook_size, slow.dim]
  std::vector<BlockWeights> slow_layers;
  Tensor norm;  // f32 [slow.dim]
  Head head;

  ops::PackedMatrix fast_in;  // [fast.dim, slow.dim] + bias; no outputs when the widths are equal
  Tensor fast_embedding;      // f32, bf16 or f16 [codebook_size, fast.dim]
  std::vector<BlockWeights> fast_layers;
  Tensor fast_norm;             // f32 [fast.dim]
  ops::PackedMatrix fast_head;  // [residual_codes, fast.dim]

  Tensor slow_rope, fast_rope;  // ops::make_rope_table
};

struct BindOptions {
  Formats formats;
  bool semantic_head = false;
};

// Of a source of names only the weights are without memory (Tensor::sized).
Weights bind(weights::TensorSource& source, const Config& config, ops::Context& ctx,
             const BindOptions& options);

// Tensors of any name and shape, filled from a hash: benchmarks need sizes, not meaning. bf16. Matrices: zero
// mean, magnitudes about 1 / sqrt(inputs), so that activations keep their size through the layers; vectors
// (norms, biases) lie in [1/2, 1). A pure function of (seed, name, index). The team must outlive it.
std::unique_ptr<weights::TensorSource> random_weights(uint64_t seed, ThreadTeam& team);

}  // namespace shoal::dual_ar
