// f32 products of some dozens or hundreds of rows on tensor cores: few blocks, so that each has to be short.
// A block computes 32 rows by 32 columns; its warps take the segments of the sum (matrix_layout.cuh) side by
// side, each from shared memory of its own, and add them up in their order.
#include <algorithm>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/f32/f32_product.cuh"
#include "ops/cuda/gemm/f32/f32_product.h"
#include "ops/cuda/gemm/f32/tf32.cuh"
#include "ops/cuda/gemm/f32/tf32_pieces.cuh"
#include "ops/cuda/gemm/f32/tf32_product.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kSide = Tf32Sums::kSide;      // rows and columns of a block
constexpr int kMostWarps = kF32SliceWarps;  // which take so many segments at a time
constexpr int kPairs = kSide * kSide / 2;
constexpr int kStages = 2;
using Piece = Tf32Piece<kSide, /*inputs=*/16>;
using Copier = Tf32Copier<Piece, 32>;
constexpr int kWarpBytes = kStages * static_cast<int>(sizeof(Piece));

__device__ inline Tf32Sums sum_of_segment(const F32Arguments& a, int segment, const Copier& copier,
                                          Piece* stages) {
  PieceOfSum copied(a, segment);
  const auto copy_next = [&](int stage) {
    if (copied.begin < copied.end) copier.copy(copied, stages[stage]);
    copied.begin += Piece::kInputs;
    end_copy_group();
  };
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) copy_next(stage);
  Tf32Sums sums;
  int stage = 0;
  for (int begin = a.segment_begin(segment); begin < copied.end; begin += Piece::kInputs) {
    wait_for_copy_groups<kStages - 2>();
    __syncwarp();
    copy_next((stage + kStages - 1) % kStages);
    sums.add<Piece::kInputs, Piece::kXPitch, Piece::kWeightPitch, /*kUnrolled=*/1>(
        &stages[stage].x[0][0], &stages[stage].weight[0][0]);
    stage = (stage + 1) % kStages;
  }
  return sums;
}

// Threads: a warp for each segment, at most kMostWarps.
__global__ void __launch_bounds__(kMostWarps * 32, 2)
    tf32_slices_kernel(const __grid_constant__ F32Arguments a) {
  extern __shared__ float4 shared_bytes[];
  __shared__ float2 totals[kPairs];  // each has one thread
  wait_for_inputs();
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int warp = thread / 32, warps = threads / 32;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kSide,
                first_column = static_cast<int64_t>(blockIdx.y) * kSide;
  char* const bytes = reinterpret_cast<char*>(shared_bytes);
  auto* const pieces = reinterpret_cast<Piece*>(bytes + warp * kWarpBytes);
  // A warp's sums lie where its pieces were.
  const auto sums_of = [&](int of) { return reinterpret_cast<float2*>(bytes + of * kWarpBytes); };
  const Copier copier(a, first_row, first_column, thread % 32);
  for (int pair = thread; pair < kPairs; pair += threads) totals[pair] = float2{};
  for (int first = 0; first < a.segments; first += warps) {
    const int count = min(warps, a.segments - first);
    if (warp < count) {
      const Tf32Sums sums = sum_of_segment(a, first + warp, copier, pieces);
      __syncwarp();
      sums.each_pair([&](int row, int column, float left, float right) {
        sums_of(warp)[(row * kSide + column) / 2] = {left, right};
      });
    }
    __syncthreads();
    for (int pair = thread; pair < kPairs; pair += threads) {
      float2 total = totals[pair];
      for (int segment = 0; segment < count; ++segment) {
        const float2 own = sums_of(segment)[pair];
        total = {__fadd_rn(total.x, own.x), __fadd_rn(total.y, own.y)};
      }
      totals[pair] = total;
    }
    __syncthreads();
  }
  for (int pair = thread; pair < kPairs; pair += threads) {
    const int64_t row = first_row + pair / (kSide / 2);
    if (row < a.rows)
      store_two_columns(a, row, first_column + pair % (kSide / 2) * 2, totals[pair].x, totals[pair].y);
  }
}

}  // namespace

void tf32_slices(Context& ctx, const Product& product) {
  const F32Arguments arguments = f32_arguments(product);
  const int warps = std::min(arguments.segments, kMostWarps);
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks_for(arguments.rows, kSide)),
                                 static_cast<unsigned>(arguments.columns / kSide)),
                  .threads = dim3(static_cast<unsigned>(warps * 32)),
                  .shared_bytes = static_cast<size_t>(warps * kWarpBytes)};
  launch(ctx, "f32 product", grid, tf32_slices_kernel, arguments);
}

}  // namespace shoal::ops::cuda
