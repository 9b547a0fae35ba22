// From names to weights: every tensor of a DualAR checkpoint is named here once, with its shape
// (MODEL.md 7).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/dual_ar/block.h"
#include "models/dual_ar/config.h"
#include "ops/context.h"
#include "ops/packed_matrix.h"
#include "tensor/tensor.h"

namespace shoal::dual_ar {

struct Weights {
  Tensor text_embedding;      // f32, bf16 or f16 [vocab, slow.dim]
  Tensor codebook_embedding;  // same dtype [num_codebooks * codebook_size, slow.dim]
  std::vector<BlockWeights> slow_layers;
  Tensor norm;             // f32 [slow.dim]
  ops::PackedMatrix head;  // [vocab, slow.dim], or the semantic rows, then <|im_end|>'s

  ops::PackedMatrix fast_in;  // [fast.dim, slow.dim] + bias; no outputs when the widths are equal
  Tensor fast_embedding;      // f32, bf16 or f16 [codebook_size, fast.dim]
  std::vector<BlockWeights> fast_layers;
  Tensor fast_norm;             // f32 [fast.dim]
  ops::PackedMatrix fast_head;  // [residual_codes, fast.dim]

  Tensor slow_rope, fast_rope;  // ops::make_rope_table
  bool semantic_head = false;   // the head has the semantic rows only
};

// Where the tensors come from.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual bool contains(std::string_view name) = 0;
  // Row-major, f32, bf16 or f16, of that very shape; valid until release(). Throws Error.
  virtual TensorView get(const std::string& name, const Shape& shape) = 0;
  // What get() returned is no longer needed.
  virtual void release() = 0;
  // True when only the asking matters (inventory.h): the views carry no data and nothing is made of them.
  virtual bool names_only() const { return false; }
};

struct BindOptions {
  DType dtype = DType::f32;  // of matrices and embeddings
  bool semantic_head = false;
};

Weights bind(TensorSource& source, const Config& config, ops::Context& ctx, const BindOptions& options);

}  // namespace shoal::dual_ar
