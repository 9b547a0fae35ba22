// Norms of rows. All are bound by memory: a second read (long rows of a norm) hits the L1 cache.
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/rows/rows_access.cuh"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kMostWarps = 8;  // rows of a block

// A warp per row: blocks of one warp where there are few rows, so that they spread over the multiprocessors.
Grid warp_per_row(int64_t rows) {
  const int64_t warps = rows >= 1024 ? kMostWarps : 1;
  return {dim3(static_cast<unsigned>(blocks_for(rows, warps))), dim3(static_cast<unsigned>(warps * kWarp))};
}

__device__ inline int64_t row_of_warp() { return (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp; }

struct NormRows {
  const float* x;
  float* y;
  int64_t x_stride, y_stride, rows;
  int dim;
  float eps;
  const float* weight;
  const float* bias;
  bool x_vectors, y_vectors, weight_vectors;  // has_vector_rows; of weight and bias both
  // Which of `weights` rows of weight and bias a row takes; null: there is one.
  const int32_t* which = nullptr;
  int64_t weights = 1, weight_stride = 0, bias_stride = 0;

  __device__ int64_t weight_of(int64_t row) const {
    return which ? min(max(int64_t{which[row]}, int64_t{0}), weights - 1) : 0;
  }
};

NormRows norm_rows(TensorView x, TensorView weight, TensorView bias, float eps, TensorView y) {
  return {.x = x.as<float>(),
          .y = y.as<float>(),
          .x_stride = x.stride(0),
          .y_stride = y.stride(0),
          .rows = x.dim(0),
          .dim = static_cast<int>(x.dim(1)),
          .eps = eps,
          .weight = weight.as<float>(),
          .bias = bias.empty() ? nullptr : bias.as<float>(),
          .x_vectors = has_vector_rows(x),
          .y_vectors = has_vector_rows(y),
          .weight_vectors = has_vector_rows(weight.as<float>(), 0, x.dim(1)) &&
                            (bias.empty() || has_vector_rows(bias.as<float>(), 0, x.dim(1)))};
}

__global__ void __launch_bounds__(kWarp* kMostWarps) rms_norm_kernel(const NormRows a) {
  wait_for_inputs();
  const int64_t row = row_of_warp();
  if (row >= a.rows) return;
  const float* const x = a.x + row * a.x_stride;
  float* const y = a.y + row * a.y_stride;
  RowNorm norm;
  norm.measure(x, a.dim, a.eps, a.x_vectors);
  norm.write(
      x, a.dim, a.x_vectors, [&](int k) { return load_four(a.weight, k, a.dim, a.weight_vectors); },
      [&](int k, const float4& v) { store_four(y, k, a.dim, a.y_vectors, v); });
}

// body(k, x[k .. k + 3]) for the pieces of this lane.
template <typename Body>
__device__ void each_four(const float* row, int dim, bool vectors, Body body) {
#pragma unroll 4
  for (int k = 4 * static_cast<int>(threadIdx.x % kWarp); k < dim; k += 4 * kWarp)
    body(k, load_four(row, k, dim, vectors));
}

// Order of both sums: lane l has four accumulators; number c takes elements 128 i + 4 l + c by rising i.
__global__ void __launch_bounds__(kWarp* kMostWarps) layer_norm_kernel(const NormRows a) {
  wait_for_inputs();
  const int64_t row = row_of_warp();
  if (row >= a.rows) return;
  const float* const x = a.x + row * a.x_stride;
  float* const y = a.y + row * a.y_stride;
  const int64_t own = a.weight_of(row);
  const float* const weight = a.weight + own * a.weight_stride;
  const float* const bias = a.bias + own * a.bias_stride;
  const float dim = static_cast<float>(a.dim);

  float4 sums{};
  each_four(x, a.dim, a.x_vectors,
            [&](int, const float4& v) { sums.x += v.x, sums.y += v.y, sums.z += v.z, sums.w += v.w; });
  const float mean = warp_sum((sums.x + sums.y) + (sums.z + sums.w)) / dim;
  float4 squares{};
  each_four(x, a.dim, a.x_vectors, [&](int k, const float4& v) {
    const auto add = [&](float& sum, float value, int at) {
      const float off = at < a.dim ? value - mean : 0.0f;
      sum = __fmaf_rn(off, off, sum);
    };
    add(squares.x, v.x, k), add(squares.y, v.y, k + 1), add(squares.z, v.z, k + 2),
        add(squares.w, v.w, k + 3);
  });
  const float variance = warp_sum((squares.x + squares.y) + (squares.z + squares.w)) / dim;
  const float factor = 1.0f / __fsqrt_rn(variance + a.eps);
  each_four(x, a.dim, a.x_vectors, [&](int k, const float4& v) {
    const float4 w = load_four(weight, k, a.dim, a.weight_vectors);
    const float4 b = load_four(bias, k, a.dim, a.weight_vectors);
    const auto normed = [&](float value, float scale, float shift) {
      return __fmaf_rn((value - mean) * factor, scale, shift);
    };
    store_four(y, k, a.dim, a.y_vectors,
               {normed(v.x, w.x, b.x), normed(v.y, w.y, b.y), normed(v.z, w.z, b.z), normed(v.w, w.w, b.w)});
  });
}

}  // namespace

void rms_norm(Context& ctx, TensorView x, TensorView weight, float eps, TensorView y) {
  launch(ctx, "rms_norm", warp_per_row(x.dim(0)), rms_norm_kernel, norm_rows(x, weight, {}, eps, y));
}

void layer_norm(Context& ctx, TensorView x, TensorView weight, TensorView bias, float eps, TensorView y) {
  launch(ctx, "layer_norm", warp_per_row(x.dim(0)), layer_norm_kernel, norm_rows(x, weight, bias, eps, y));
}

void layer_norm_by_row(Context& ctx, TensorView x, TensorView which, TensorView weights, TensorView biases,
                       float eps, TensorView y) {
  NormRows rows = norm_rows(x, weights, biases, eps, y);
  rows.which = which.as<int32_t>();
  rows.weights = weights.dim(0);
  rows.weight_stride = weights.stride(0);
  rows.bias_stride = biases.stride(0);
  rows.weight_vectors = has_vector_rows(weights) && has_vector_rows(biases);
  launch(ctx, "layer_norm_by_row", warp_per_row(x.dim(0)), layer_norm_kernel, rows);
}

}  // namespace shoal::ops::cuda
