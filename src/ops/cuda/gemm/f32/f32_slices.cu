// f32 products of some dozens or hundreds of rows: few blocks, so that each has to be short. A block computes
// 32 rows by 32 columns; its warps take the segments of the sum (matrix_layout.cuh) side by side, each from
// shared memory of its own, and add them up in their order.
#include <algorithm>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/f32/f32_product.cuh"
#include "ops/cuda/gemm/f32/f32_product.h"
#include "ops/cuda/rows/row_norm.cuh"

namespace shoal::ops::cuda {
namespace {

constexpr int kSide = 32;                   // rows and columns of a block
constexpr int kMostWarps = kF32SliceWarps;  // which take so many segments at a time
constexpr int kPiece = 16;                  // inputs in shared memory
constexpr int kPitch = kSide + 4;
constexpr int kQuads = kSide * kSide / 4;  // of four neighbouring columns

struct WarpPiece {
  float x[kPiece][kPitch];  // rows side by side
  float weight[kPiece][kSide];
};

union alignas(16) Shared {
  WarpPiece pieces[kMostWarps];
  float sums[kMostWarps][kSide][kPitch];
};

// A segment's next inputs on their way: a lane brings those of one row, and of the weights four columns of
// inputs lane / 8 + 4 i.
class LanePieces {
 public:
  __device__ LanePieces(const F32Arguments& a, int64_t first_row, int64_t first_column)
      : a_(a),
        lane_(static_cast<int>(threadIdx.x) % 32),
        row_(first_row + lane_),
        column_(first_column + lane_ % 8 * 4),
        vectors_(a.has_vector_rows()) {}

  __device__ void load(int segment, int begin) {
    const int end = a_.segment_end(segment);
    const float* const row = row_ < a_.rows ? a_.row_of(row_, segment) : nullptr;
    const float* const weight = a_.weight_of(segment) + column_;
#pragma unroll
    for (int i = 0; i < kPiece / 4; ++i) {
      x_[i] = row ? load_four(row, begin + 4 * i, end, vectors_) : float4{};
      const int k = begin + 4 * i + lane_ / 8;
      weight_[i] = k < end ? *reinterpret_cast<const float4*>(weight + k * a_.columns) : float4{};
    }
  }
  __device__ void store(WarpPiece& piece) const {
#pragma unroll
    for (int i = 0; i < kPiece / 4; ++i) {
      piece.x[4 * i][lane_] = x_[i].x, piece.x[4 * i + 1][lane_] = x_[i].y;
      piece.x[4 * i + 2][lane_] = x_[i].z, piece.x[4 * i + 3][lane_] = x_[i].w;
      *reinterpret_cast<float4*>(&piece.weight[4 * i + lane_ / 8][lane_ % 8 * 4]) = weight_[i];
    }
  }

 private:
  const F32Arguments& a_;
  int lane_;
  int64_t row_, column_;
  bool vectors_;
  float4 x_[kPiece / 4], weight_[kPiece / 4];
};

// A lane: rows lane / 4 * 4 .. + 3, columns lane % 4 * 8 .. + 7.
struct LaneSums {
  float sum[4][8] = {};

  __device__ void add(const WarpPiece& piece) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int k = 0; k < kPiece; ++k) {
      const float4 rows = *reinterpret_cast<const float4*>(&piece.x[k][lane / 4 * 4]);
      const float4 low = *reinterpret_cast<const float4*>(&piece.weight[k][lane % 4 * 8]);
      const float4 high = *reinterpret_cast<const float4*>(&piece.weight[k][lane % 4 * 8 + 4]);
      const float r[4] = {rows.x, rows.y, rows.z, rows.w};
      const float c[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] = __fmaf_rn(r[i], c[j], sum[i][j]);
    }
  }
  __device__ void store(float (&to)[kSide][kPitch]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 8; j += 4)
        *reinterpret_cast<float4*>(&to[lane / 4 * 4 + i][lane % 4 * 8 + j]) = {sum[i][j], sum[i][j + 1],
                                                                               sum[i][j + 2], sum[i][j + 3]};
  }
};

__device__ inline LaneSums sum_of_segment(const F32Arguments& a, int segment, int64_t first_row,
                                          int64_t first_column, WarpPiece& piece) {
  LaneSums sums;
  LanePieces pieces(a, first_row, first_column);
  const int begin = a.segment_begin(segment), end = a.segment_end(segment);
  if (begin < end) pieces.load(segment, begin);
  for (int k = begin; k < end; k += kPiece) {
    __syncwarp();
    pieces.store(piece);
    __syncwarp();
    if (k + kPiece < end) pieces.load(segment, k + kPiece);
    sums.add(piece);
  }
  return sums;
}

// Threads: a warp for each segment, at most kMostWarps.
__global__ void __launch_bounds__(kMostWarps * 32, 2) f32_slices_kernel(const F32Arguments a) {
  __shared__ Shared shared;
  __shared__ float4 totals[kQuads];  // each has one thread
  wait_for_inputs();
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int warp = thread / 32, warps = threads / 32;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kSide;
  const int64_t first_column = static_cast<int64_t>(blockIdx.y) * kSide;
  for (int quad = thread; quad < kQuads; quad += threads) totals[quad] = float4{};
  for (int first = 0; first < a.segments; first += warps) {
    const int count = min(warps, a.segments - first);
    LaneSums sums;
    if (warp < count) sums = sum_of_segment(a, first + warp, first_row, first_column, shared.pieces[warp]);
    __syncthreads();
    if (warp < count) sums.store(shared.sums[warp]);
    __syncthreads();
    for (int quad = thread; quad < kQuads; quad += threads) {
      float4 total = totals[quad];
      for (int segment = 0; segment < count; ++segment) {
        const float4 own = *reinterpret_cast<const float4*>(&shared.sums[segment][quad / 8][quad % 8 * 4]);
        total = {__fadd_rn(total.x, own.x), __fadd_rn(total.y, own.y), __fadd_rn(total.z, own.z),
                 __fadd_rn(total.w, own.w)};
      }
      totals[quad] = total;
    }
    __syncthreads();
  }
  for (int quad = thread; quad < kQuads; quad += threads) {
    const int64_t row = first_row + quad / 8;
    const float4 total = totals[quad];
    if (row < a.rows)
      store_columns(a, row, first_column + quad % 8 * 4, {total.x, total.y, total.z, total.w});
  }
}

}  // namespace

// By blocks of 32 rows and 32 columns whose warps share the segments.
void f32_slices(Context& ctx, const Product& product) {
  const F32Arguments arguments = f32_arguments(product);
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks_for(arguments.rows, kSide)),
                                 static_cast<unsigned>(arguments.columns / kSide)),
                  .threads = dim3(static_cast<unsigned>(std::min(arguments.segments, kMostWarps) * 32))};
  launch(ctx, "f32 product", grid, f32_slices_kernel, arguments);
}

}  // namespace shoal::ops::cuda
