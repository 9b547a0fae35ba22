#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/f32/f32_product.cuh"
#include "ops/cuda/gemm/f32/f32_product.h"
#include "ops/cuda/rows/row_norm.cuh"

namespace shoal::ops::cuda {
namespace {

// Many rows: a block computes 64 rows by 64 columns, a thread 4 by 4, from pieces of 16 inputs in shared
// memory. The next piece is on its way into registers meanwhile.
constexpr int kThreads = 256, kBlockRows = static_cast<int>(kF32BlockRows), kPiece = 16;
constexpr int kRowPitch =
    kBlockRows + 4;  // floats: the four threads that store one row's inputs use other banks

class BlockPieces {
 public:
  __device__ explicit BlockPieces(const F32Arguments& a)
      : a_(a),
        column_(static_cast<int64_t>(blockIdx.y) * kF32Columns + threadIdx.x % 16 * 4),
        row_(static_cast<int64_t>(blockIdx.x) * kBlockRows + threadIdx.x / 4),
        vectors_(a.has_vector_rows()) {}

  // Thread t brings inputs t % 4 * 4 .. + 3 of row t / 4, and columns t % 16 * 4 .. + 3 of input t / 16.
  __device__ void load(int segment, int begin) {
    const int end = a_.segment_end(segment);
    x_ = row_ < a_.rows ? load_four(a_.row_of(row_, segment), begin + threadIdx.x % 4 * 4, end, vectors_)
                        : float4{};
    const int k = begin + static_cast<int>(threadIdx.x / 16);
    weight_ = k < end ? *reinterpret_cast<const float4*>(a_.weight_of(segment) + k * a_.columns + column_)
                      : float4{};
  }
  __device__ void store(float (&x)[kPiece][kRowPitch], float (&weight)[kPiece][kF32Columns]) const {
    const int k = threadIdx.x % 4 * 4, row = threadIdx.x / 4;
    x[k][row] = x_.x, x[k + 1][row] = x_.y, x[k + 2][row] = x_.z, x[k + 3][row] = x_.w;
    *reinterpret_cast<float4*>(&weight[threadIdx.x / 16][threadIdx.x % 16 * 4]) = weight_;
  }

 private:
  const F32Arguments& a_;
  int64_t column_, row_;
  bool vectors_;
  float4 x_, weight_;
};

__device__ inline void multiply_piece(const float (&x)[kPiece][kRowPitch],
                                      const float (&weight)[kPiece][kF32Columns], float (&sums)[4][4]) {
#pragma unroll
  for (int k = 0; k < kPiece; ++k) {
    const float4 rows = *reinterpret_cast<const float4*>(&x[k][threadIdx.x / 16 * 4]);
    const float4 columns = *reinterpret_cast<const float4*>(&weight[k][threadIdx.x % 16 * 4]);
    const float r[4] = {rows.x, rows.y, rows.z, rows.w}, c[4] = {columns.x, columns.y, columns.z, columns.w};
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[i][j] = __fmaf_rn(r[i], c[j], sums[i][j]);
  }
}

__global__ void __launch_bounds__(kThreads) f32_block_kernel(const F32Arguments a) {
  __shared__ float4 aligned_x[kPiece * kRowPitch / 4], aligned_weight[kPiece * kF32Columns / 4];
  auto& x = reinterpret_cast<float(&)[kPiece][kRowPitch]>(aligned_x);
  auto& weight = reinterpret_cast<float(&)[kPiece][kF32Columns]>(aligned_weight);
  wait_for_inputs();
  BlockPieces pieces(a);
  float totals[4][4] = {};
  pieces.load(0, a.segment_begin(0));
  for (int segment = 0; segment < a.segments; ++segment) {
    float sums[4][4] = {};
    for (int begin = a.segment_begin(segment); begin < a.segment_end(segment); begin += kPiece) {
      __syncthreads();
      pieces.store(x, weight);
      __syncthreads();
      if (begin + kPiece < a.segment_end(segment))
        pieces.load(segment, begin + kPiece);
      else if (segment + 1 < a.segments)
        pieces.load(segment + 1, a.segment_begin(segment + 1));
      multiply_piece(x, weight, sums);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) totals[i][j] = __fadd_rn(totals[i][j], sums[i][j]);
  }
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kBlockRows + threadIdx.x / 16 * 4;
  const int64_t column = static_cast<int64_t>(blockIdx.y) * kF32Columns + threadIdx.x % 16 * 4;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (row + i < a.rows) store_columns(a, row + i, column, totals[i]);
}

// Few rows of a matrix with one tap: a warp computes a segment of 32 columns, a lane one of them.
constexpr int kFewRows = static_cast<int>(kF32FewRows),
              kTogether = 8;  // inputs whose weights a lane asks for at once

template <int kRows>
__device__ inline void few_rows_segment(const F32Arguments& a, int segment, int64_t column,
                                        float (&sums)[kRows]) {
  const bool vectors = a.has_vector_rows();
  const int end = a.segment_end(segment);
  const float* const from = a.weight + column;
  float next[kTogether];
  const auto load = [&](int begin) {
#pragma unroll
    for (int j = 0; j < kTogether; ++j)
      next[j] = begin + j < end ? __ldg(from + (begin + j) * a.columns) : 0.0f;
  };
  load(a.segment_begin(segment));
  wait_for_inputs();
  for (int begin = a.segment_begin(segment); begin < end; begin += kTogether) {
    float weights[kTogether];
#pragma unroll
    for (int j = 0; j < kTogether; ++j) weights[j] = next[j];
    load(begin + kTogether);
#pragma unroll
    for (int j = 0; j < kTogether; j += 4)
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        if (row >= a.rows) break;
        const float4 x = load_four(a.x + row * a.x_stride, begin + j, end, vectors);
        sums[row] = __fmaf_rn(x.x, weights[j], sums[row]);
        sums[row] = __fmaf_rn(x.y, weights[j + 1], sums[row]);
        sums[row] = __fmaf_rn(x.z, weights[j + 2], sums[row]);
        sums[row] = __fmaf_rn(x.w, weights[j + 3], sums[row]);
      }
  }
}

template <int kRows>
__global__ void __launch_bounds__(kSegments * 32) f32_few_rows_kernel(const F32Arguments a) {
  __shared__ float shared[kSegments][kRows][32];
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + lane;
  float sums[kRows] = {};
  few_rows_segment<kRows>(a, warp, column, sums);
#pragma unroll
  for (int row = 0; row < kRows; ++row) shared[warp][row][lane] = sums[row];
  __syncthreads();
  // Warp w finishes row w.
  if (warp >= kRows || warp >= a.rows) return;
  float total = 0.0f;
#pragma unroll
  for (int segment = 0; segment < kSegments; ++segment) total = __fadd_rn(total, shared[segment][warp][lane]);
  if (a.paired) {
    const float up = __shfl_down_sync(~0u, total, 1);
    if (lane % 2 == 0 && column / 2 < a.outputs) store_swiglu(a.epilogue, warp, column / 2, total, up);
  } else if (column < a.outputs) {
    store_product(a.epilogue, warp, column, total);
  }
}

}  // namespace

F32Arguments f32_arguments(const Product& product) {
  const MatrixShape& shape = product.shape;
  const bool several_taps = shape.taps > 1;
  return {.x = static_cast<const float*>(product.x),
          .x_stride = product.x_stride,
          .rows = product.rows,
          .taps = product.taps,
          .weight = static_cast<const float*>(product.weight),
          .columns = f32_columns(shape),
          .outputs = static_cast<int>(shape.outputs),
          .depth = static_cast<int>(shape.depth),
          .segments = several_taps ? static_cast<int>(shape.taps) : kSegments,
          .segment_inputs = static_cast<int>(shape.segment_tiles() * kTileInputs),
          .several_taps = several_taps,
          .paired = shape.paired,
          .epilogue = product.epilogue};
}

void f32_few_rows(Context& ctx, const Product& product) {
  CHECK(product.rows <= kF32FewRows && product.shape.taps == 1 && !product.taps.first_rows, "f32 product of ",
        product.rows, " rows");
  const F32Arguments arguments = f32_arguments(product);
  const Grid grid{.blocks = dim3(static_cast<unsigned>(arguments.columns / 32)),
                  .threads = dim3(kSegments * 32)};
  launch(ctx, "f32 product", grid, product.rows == 1 ? f32_few_rows_kernel<1> : f32_few_rows_kernel<kFewRows>,
         arguments);
}

void f32_blocks(Context& ctx, const Product& product) {
  const F32Arguments arguments = f32_arguments(product);
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks_for(product.rows, kBlockRows)),
                                 static_cast<unsigned>(arguments.columns / kF32Columns)),
                  .threads = dim3(kThreads)};
  launch(ctx, "f32 product", grid, f32_block_kernel, arguments);
}

}  // namespace shoal::ops::cuda
