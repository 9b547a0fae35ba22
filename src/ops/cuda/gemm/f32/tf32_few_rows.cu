// f32 products of few rows of a matrix with one tap, on tensor cores: a warp computes a segment of 32
// columns, whose weights come straight from memory into the lanes that multiply them.
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/f32/f32_product.cuh"
#include "ops/cuda/gemm/f32/f32_product.h"
#include "ops/cuda/gemm/f32/tf32.cuh"
#include "ops/cuda/gemm/f32/tf32_product.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kRows = static_cast<int>(kF32FewRows), kWarpColumns = 32;
constexpr int kTogether = 16;  // inputs whose weights a lane asks for at once

// sums: lane 4 g + q has row g of columns 8 q + t and 8 q + 4 + t, for t = 0 .. 3. weight: its first column.
__device__ inline void few_rows_segment(const F32Arguments& a, int segment, const float* weight,
                                        float (&sums)[1][4][4]) {
  const int g = static_cast<int>(threadIdx.x) % 32 / 4, q = static_cast<int>(threadIdx.x) % 4;
  const int end = a.segment_end(segment);
  const float* const x = a.x + g * a.x_stride;
  float4 next[kTogether / 4];
  const auto load = [&](int begin) {
#pragma unroll
    for (int i = 0; i < kTogether / 4; ++i) {
      const int k = begin + 4 * i + q;
      next[i] = k < end ? __ldg(reinterpret_cast<const float4*>(weight + k * a.columns + 4 * g)) : float4{};
    }
  };
  load(a.segment_begin(segment));
  wait_for_inputs();
  for (int begin = a.segment_begin(segment); begin < end; begin += kTogether) {
    float4 weights[kTogether / 4];
#pragma unroll
    for (int i = 0; i < kTogether / 4; ++i) weights[i] = next[i];
    load(begin + kTogether);
#pragma unroll
    for (int i = 0; i < kTogether / 4; i += 2) {
      const auto row = [&](int k) { return Tf32Parts(g < a.rows && k < end ? x[k] : 0.0f); };
      const int k = begin + 4 * i + q;
      const Tf32Parts none(0.0f), rows[1][4] = {{row(k), none, row(k + 4), none}};
      const float4 &low = weights[i], &high = weights[i + 1];
      const Tf32Parts columns[4][2] = {{Tf32Parts(low.x), Tf32Parts(high.x)},
                                       {Tf32Parts(low.y), Tf32Parts(high.y)},
                                       {Tf32Parts(low.z), Tf32Parts(high.z)},
                                       {Tf32Parts(low.w), Tf32Parts(high.w)}};
      add_products(sums, rows, columns);
    }
  }
}

__global__ void __launch_bounds__(kSegments * 32)
    tf32_few_rows_kernel(const __grid_constant__ F32Arguments a) {
  __shared__ float shared[kSegments][kRows][kWarpColumns];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * kWarpColumns;
  float sums[1][4][4] = {};
  few_rows_segment(a, warp, a.weight + first_column, sums);
#pragma unroll
  for (int t = 0; t < 4; ++t) {
    shared[warp][lane / 4][lane % 4 * 8 + t] = sums[0][t][0];
    shared[warp][lane / 4][lane % 4 * 8 + 4 + t] = sums[0][t][1];
  }
  __syncthreads();
  // Warp w finishes row w.
  if (warp >= a.rows) return;
  float total = 0.0f;
#pragma unroll
  for (int segment = 0; segment < kSegments; ++segment) total = __fadd_rn(total, shared[segment][warp][lane]);
  const float right = __shfl_down_sync(~0u, total, 1);
  if (lane % 2 == 0) store_two_columns(a, warp, first_column + lane, total, right);
}

}  // namespace

void tf32_few_rows(Context& ctx, const Product& product) {
  CHECK(product.rows <= kF32FewRows && product.shape.taps == 1 && !product.taps.first_rows, "f32 product of ",
        product.rows, " rows");
  const F32Arguments arguments = f32_arguments(product);
  const Grid grid{.blocks = dim3(static_cast<unsigned>(arguments.columns / kWarpColumns)),
                  .threads = dim3(kSegments * 32)};
  launch(ctx, "f32 product", grid, tf32_few_rows_kernel, arguments);
}

}  // namespace shoal::ops::cuda
