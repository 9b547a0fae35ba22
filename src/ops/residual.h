// The residual stream of a transformer: rows to which products are added, and which norms read.
#pragma once

#include "ops/linear.h"

namespace shoal::ops {

// Rows, and what is still to be added to them. On a GPU a product of many rows is fastest where every segment
// of its inputs is multiplied on its own; their sums then wait until the rows are read, by the norm before
// the next product, which has to pass over the rows anyway. The values are those of adding at once.
struct Residual {
  // x: f32 [rows, dim], contiguous. weights: dtype of the matrices whose products are added. Room for sums
  // (pending_bytes) is taken from ctx.workspace.
  Residual(Context& ctx, TensorView x, DType weights);

  TensorView rows;       // x
  TensorView sums;       // f32 [segments, rows, dim]; empty: products are added at once
  bool pending = false;  // `sums` are to be added to the rows
};
// Sums may wait for so many rows (of 9 to 16 only those of large matrices do, of more than 256 only others):
// fewer are multiplied by kernels that add at once, more fill a GPU without.
constexpr int64_t kFewestPendingRows = 9, kMostPendingRows = 384;
// Those of every matrix on a GPU (cuda/gemm/operands/matrix_layout.cuh).
constexpr int64_t kPendingSegments = 8;
// Memory in which the sums of so many rows wait, where they do: products of 32-bit weights never wait.
int64_t pending_bytes(int64_t rows, int64_t dim, DType weights);

// to += in weight^T (+ bias).  in: as linear's x.
void add_linear(Context& ctx, TensorView in, const PackedMatrix& weight, Residual& to);

// norm_linear and norm_swiglu of the stream's rows, to which everything is added first.
void norm_linear(Context& ctx, Residual& x, const RmsNorm& norm, const PackedMatrix& weight, TensorView y);
void norm_swiglu(Context& ctx, Residual& x, const RmsNorm& norm, const PackedMatrix& gate_up, TensorView y);

// The rows with everything added.
TensorView settled(Context& ctx, Residual& x);

}  // namespace shoal::ops
