// The snake (snake.cuh) of rows; bound by memory.
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/rows/rows_access.cuh"
#include "ops/cuda/rows/snake.cuh"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kSnakeThreads = 256, kSnakeRows = 4;  // rows of a thread, which share 1 / alpha

struct SnakeRows {
  const float* x;
  const float* alpha;
  float* y;
  int64_t x_stride, y_stride, rows;
  int channels;
  bool x_vectors, y_vectors, alpha_vectors;
};

// Threads: x channels in fours, y rows.
__global__ void __launch_bounds__(kSnakeThreads) snake_kernel(const SnakeRows a) {
  const int k = 4 * static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  const float4 alpha = load_four(a.alpha, k, a.channels, a.alpha_vectors);
  const float4 inverse{snake_inverse(alpha.x), snake_inverse(alpha.y), snake_inverse(alpha.z),
                       snake_inverse(alpha.w)};
  wait_for_inputs();
  if (k >= a.channels) return;
#pragma unroll
  for (int i = 0; i < kSnakeRows; ++i) {
    const int64_t row = (int64_t{blockIdx.x} * kSnakeRows + i) * blockDim.y + threadIdx.y;
    if (row >= a.rows) break;
    const float4 v = load_four(a.x + row * a.x_stride, k, a.channels, a.x_vectors);
    store_four(a.y + row * a.y_stride, k, a.channels, a.y_vectors,
               {snake_value(v.x, alpha.x, inverse.x), snake_value(v.y, alpha.y, inverse.y),
                snake_value(v.z, alpha.z, inverse.z), snake_value(v.w, alpha.w, inverse.w)});
  }
}

}  // namespace

void snake(Context& ctx, TensorView x, TensorView alpha, TensorView y) {
  const SnakeRows rows{.x = x.as<float>(),
                       .alpha = alpha.as<float>(),
                       .y = y.as<float>(),
                       .x_stride = x.stride(0),
                       .y_stride = y.stride(0),
                       .rows = x.dim(0),
                       .channels = static_cast<int>(x.dim(1)),
                       .x_vectors = has_vector_rows(x),
                       .y_vectors = has_vector_rows(y),
                       .alpha_vectors = has_vector_rows(alpha.as<float>(), 0, x.dim(1))};
  const int64_t fours = blocks_for(rows.channels, 4);
  unsigned across = 1;  // a power of two, so that it divides the threads
  while (across < fours && across < kSnakeThreads) across *= 2;
  const dim3 threads(across, kSnakeThreads / across);
  const dim3 blocks(static_cast<unsigned>(blocks_for(rows.rows, int64_t{threads.y} * kSnakeRows)),
                    static_cast<unsigned>(blocks_for(fours, across)));
  launch(ctx, "snake", {blocks, threads}, snake_kernel, rows);
}

}  // namespace shoal::ops::cuda
