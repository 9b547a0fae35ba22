// One pre-norm transformer block; the slow and the fast transformer are both stacks of it (MODEL.md 2).
#pragma once

#include "models/dual_ar/config.h"
#include "ops/attention.h"
#include "ops/context.h"
#include "ops/packed_matrix.h"
#include "ops/residual.h"
#include "tensor/tensor.h"

namespace shoal::dual_ar {

struct BlockWeights {
  Tensor attention_norm;      // f32 [dim]
  ops::PackedMatrix qkv;      // [qkv_width, dim] (+ bias): all query heads, all key heads, all value heads
  Tensor q_norm, k_norm;      // f32 [head_dim], or empty
  ops::PackedMatrix out;      // [dim, attention_width] (+ bias)
  Tensor ffn_norm;            // f32 [dim]
  ops::PackedMatrix gate_up;  // w1 and w3, each [hidden, dim]
  ops::PackedMatrix down;     // w2 [dim, hidden]

  int64_t bytes() const;
};

// Sees what the products of a block read.
class BlockObserver {
 public:
  enum Product : uint8_t { kQkv, kOut, kGateUp, kDown };
  static constexpr int kProducts = 4;

  virtual ~BlockObserver() = default;
  // rows: f32 on a CPU, [rows of the batch, inputs of the product].
  virtual void reads(Product product, TensorView rows) = 0;
};

// x: [rows, dim], the rows of every sequence of `plan`, to which the block is added. rope:
// ops::make_rope_table.
void forward_block(ops::Context& ctx, const BlockConfig& config, const BlockWeights& weights, TensorView rope,
                   const ops::BatchPlan& plan, const ops::KvLayer& cache, ops::Residual& x,
                   BlockObserver* observer = nullptr);

// The same where only rows `wanted` are read afterwards, as each sequence's last one behind the last block:
// only they go on behind attention. wanted: i32 [n], ids of rows of x, to which only sums that waited are
// added. y.rows: f32 [n, dim] is written; its last sums may wait.
void forward_wanted_rows(ops::Context& ctx, const BlockConfig& config, const BlockWeights& weights,
                         TensorView rope, const ops::BatchPlan& plan, const ops::KvLayer& cache,
                         ops::Residual& x, TensorView wanted, ops::Residual& y);

}  // namespace shoal::dual_ar
