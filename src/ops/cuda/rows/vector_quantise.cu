// The nearest entry of a codebook. Products are summed as on the CPU (cpu/sampling/vector_search.h), so codes
// are the same.
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kThreads = 256, kWarp = 32, kWarps = kThreads / kWarp;
constexpr int kRows = 8;      // of a block: each entry is read once for all of them
constexpr int kMostDim = 64;  // checked by the op

struct NearestRows {
  const float* x;
  int64_t x_stride, rows;
  const float* directions;
  int entries, dim;
  bool vectors;  // entries are 16-byte aligned
  int32_t* codes;
  int64_t codes_stride;
};

// The first of the largest. A NaN is never larger.
struct Best {
  float value;
  int32_t entry;

  __device__ void meet(float other, int32_t other_entry) {
    if (other > value || (other == value && other_entry < entry)) value = other, entry = other_entry;
  }
};

__device__ inline void add_products(const float (&x)[kMostDim][kRows], int d, float direction,
                                    float (&dots)[kRows]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) dots[r] = __fmaf_rn(x[d][r], direction, dots[r]);
}

__device__ inline void compare(const NearestRows& a, const float (&x)[kMostDim][kRows], int entry,
                               Best (&best)[kRows]) {
  const float* const direction = a.directions + int64_t{entry} * a.dim;
  float dots[kRows] = {};
  int d = 0;
  if (a.vectors) {
    for (; d < a.dim; d += 4) {
      const float4 four = *reinterpret_cast<const float4*>(direction + d);
      add_products(x, d, four.x, dots);
      add_products(x, d + 1, four.y, dots);
      add_products(x, d + 2, four.z, dots);
      add_products(x, d + 3, four.w, dots);
    }
  } else {
    for (; d < a.dim; ++d) add_products(x, d, direction[d], dots);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) best[r].meet(dots[r], entry);
}

// A thread compares every 256th entry with the rows of the block.
__global__ void __launch_bounds__(kThreads, 2) nearest_code_kernel(const NearestRows a) {
  alignas(16) __shared__ float x[kMostDim][kRows];
  __shared__ Best found[kRows][kWarps];
  wait_for_inputs();
  const int64_t first = int64_t{blockIdx.x} * kRows;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * a.dim; i += kThreads) {
    const int64_t row = min(first + i / a.dim, a.rows - 1);
    x[i % a.dim][i / a.dim] = a.x[row * a.x_stride + i % a.dim];
  }
  __syncthreads();

  Best best[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) best[r] = {-INFINITY, 0};
  for (int entry = static_cast<int>(threadIdx.x); entry < a.entries; entry += kThreads)
    compare(a, x, entry, best);

  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
      best[r].meet(__shfl_xor_sync(~0u, best[r].value, distance),
                   __shfl_xor_sync(~0u, best[r].entry, distance));
    if (lane == 0) found[r][warp] = best[r];
  }
  __syncthreads();
  const int64_t row = first + threadIdx.x;
  if (threadIdx.x >= kRows || row >= a.rows) return;
  Best winner = found[threadIdx.x][0];
  for (int i = 1; i < kWarps; ++i) winner.meet(found[threadIdx.x][i].value, found[threadIdx.x][i].entry);
  a.codes[row * a.codes_stride] = winner.entry;
}

}  // namespace

void nearest_code(Context& ctx, TensorView x, TensorView directions, TensorView codes) {
  const NearestRows rows{
      .x = x.as<float>(),
      .x_stride = x.stride(0),
      .rows = x.dim(0),
      .directions = directions.as<float>(),
      .entries = static_cast<int>(directions.dim(0)),
      .dim = static_cast<int>(x.dim(1)),
      .vectors = x.dim(1) % 4 == 0 && reinterpret_cast<uintptr_t>(directions.data()) % 16 == 0,
      .codes = codes.as<int32_t>(),
      .codes_stride = codes.stride(0)};
  launch(ctx, "nearest_code", {dim3(static_cast<unsigned>(blocks_for(rows.rows, kRows))), dim3(kThreads)},
         nearest_code_kernel, rows);
}

}  // namespace shoal::ops::cuda
