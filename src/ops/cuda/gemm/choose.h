// Which kernel makes a GEMM, and the only place that decides it. For 16-bit weights all kernels give the same
// bits (operands/matrix_layout.cuh), so a choice is about time alone. For f32 weights f32_... have the same
// bits, and tf32_... others; which of the two depends on the matrix and the GPU, and must not on the rows.
// Measured on an H200 (docs/perf/notebook-decode.md, notebook-codec.md, notebook-kokoro.md).
//
// The first row that applies is taken; 9.0: GPUs of that compute capability, whose tensor cores `sm90` uses.
//
// clang-format off
// | kernel       | weights | rows     | GPU | applies where                                                  |
// |--------------|---------|----------|-----|----------------------------------------------------------------|
// | f32_few_rows | f32     | 1 to 8   | all | one tap, rows in place                                         |
// | f32_slices   | f32     | any      | all | blocks of 64 x 64 results would leave some of the GPU idle     |
// | f32_blocks   | f32     | any      | all | everywhere else                                                |
// | tf32_...     | f32     | as these | 9.0 | instead of these, of 64 inputs a tap and more; slices: fewer   |
// |              |         |          |     | blocks than 0.2 a multiprocessor and segment (of 8 at most)    |
// | skinny       | 16 bits | 1 to 16  | all | one tap, no snake behind; its weights and inputs fit into      |
// |              |         |          |     | shared memory. Rounds f32 rows itself, and norms up to 8. Not  |
// |              |         |          |     | 9 rows and more of large matrices (is_large) on 9.0, if they   |
// |              |         |          |     | have 16 bits or suit swapped                                   |
// | swapped      | 8, 4    | any      | 9.0 | linear, even segments, no groups of 128, no activation         |
// | resident     | 16 bits | 17 to 64 | 9.0 | linear, even segments; the matrix and the rows fit into the    |
// |              |         |          |     | shared memory of all multiprocessors at once                   |
// | broad        | 16 bits | 65 on    | 9.0 | linear of 1024 inputs, plain epilogue; all blocks run at once  |
// | wide         | 16 bits | any      | 9.0 | expected to be faster than tile (wide_choice.h, tile_choice.h) |
// | tile         | 16 bits | any      | all | everywhere else                                                |
// clang-format on
// skinny: by three kernels; on 9.0 matrices larger than what the GPU holds at once stream
// (skinny/streamed.cuh), and those that do not come out even among blocks are shared by clusters of two
// (skinny/split.cuh). Weights of 8 and 4 bits: skinny and swapped read them as they are; before every
// other kernel they are widened to 16 bits.
//
// Convolutions never take resident or broad: those keep whole rows of x in shared memory, one for each row of
// y, and a convolution's taps read rows that neighbours share, with a step and a start of their own
// (TapRows).
#pragma once

#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/operands/products.h"

namespace shoal::ops::cuda {

enum class GemmKernel : uint8_t {
  f32_few_rows,
  f32_slices,
  f32_blocks,
  tf32_few_rows,
  tf32_slices,
  tf32_blocks,
  skinny,
  swapped,
  resident,
  broad,
  wide,
  tile
};

// What the choice depends on, besides the GPU.
struct Gemm {
  MatrixShape shape;
  DType operand = DType::bf16;  // f32, bf16 or f16
  TileForm form;                // other kernels than skinny and swapped multiply fewer bits in 16 (widened)
  int64_t rows = 0;             // of the result; more than 0
  bool linear = true;           // row t of the result is of row t of x alone, and no snake follows
  bool snake = false;           // follows; then not linear
  bool rows_in_place = true;    // no table says where the rows of the taps are (TapRows::first_rows)
  bool plain = true;            // the epilogue (TileArguments::plain)
  bool activated = false;       // by the epilogue; then not plain
  // Of a linear layer with few rows: x is f32 rows that the skinny kernel can load, and a norm comes before.
  bool f32_rows = false;
  bool norm = false;
};

struct GemmChoice {
  GemmKernel kernel = GemmKernel::tile;
  bool rounds = false;  // the kernel takes f32 rows and rounds them, after the norm if there is one; else x
                        // is rounded and normed before (product_operand)
  friend bool operator==(const GemmChoice&, const GemmChoice&) = default;
};

GemmChoice choose(const Gemm& gemm, const Machine& machine);

// Whether the sums onto a residual stream are left for the norm behind it to add (sm90/partial.cuh, and
// wide_segments): 17 to 384 rows on 9.0, of large matrices 9 to 256 (17 where neither 16 bits nor swapped),
// no bias, even segments, outputs in whole blocks, all blocks at once from 257 rows on, and rows that fit
// into the block that norms them.
bool adds_later(const Gemm& gemm, const Machine& machine);

// Whether the wide kernel that choose_wide gives is expected to be faster than tile_kernel.
bool is_wide(const MatrixShape& matrix, int64_t rows, const Machine& machine);

}  // namespace shoal::ops::cuda
