// Ops on single rows of segments: sums, mirrored first rows, doubled rows. All are bound by memory; the
// values equal the CPU's, operation by operation.
#include <algorithm>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/rows/segment_rows.cuh"
#include "ops/cuda/rows/with_type.cuh"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRowsOfThread = 4;  // that are on their way at once

// Threads: x channels in fours, y rows. A block takes kRowsOfThread rows of each y.
struct RowGrid {
  Grid grid;
  int rows;  // of a block
};
RowGrid row_grid(int64_t rows, int64_t width) {
  const int64_t fours = blocks_for(width, 4);
  unsigned across = 1;  // a power of two, so that it divides the threads
  while (across < fours && across < kThreads) across *= 2;
  const dim3 threads(across, kThreads / across);
  const int own = static_cast<int>(threads.y) * kRowsOfThread;
  return {
      {dim3(static_cast<unsigned>(blocks_for(rows, own)), static_cast<unsigned>(blocks_for(fours, across))),
       threads},
      own};
}

__device__ inline int first_channel() { return 4 * static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x); }

struct SumArguments {
  const float* x[kMostSegmentTerms];
  int64_t x_strides[kMostSegmentTerms];
  bool x_vectors[kMostSegmentTerms];
  int terms, channels, rows;  // of a block
  SegmentRows segments;
  float factor, slope;
  void* y;
  int64_t y_stride;
  bool y_vectors;
};

__device__ inline float leaky_product(float sum, float factor, float slope) {
  const float z = __fmul_rn(sum, factor);
  return z < 0.0f ? __fmul_rn(z, slope) : z;
}

template <int kTerms, typename T>
__global__ void __launch_bounds__(kThreads) sum_kernel(const SumArguments a) {
  wait_for_inputs();
  const int k = first_channel();
  T* const y = static_cast<T*>(a.y);
  const int64_t begin = int64_t{blockIdx.x} * a.rows;
  each_piece(
      a.segments, begin, min(begin + a.rows, a.segments.total_rows),
      [&](int, int64_t first, int64_t last) {
        if (k >= a.channels) return;
        float4 held[kRowsOfThread][kTerms];
#pragma unroll
        for (int i = 0; i < kRowsOfThread; ++i) {
          const int64_t row = first + threadIdx.y + i * blockDim.y;
          if (row >= last) break;
#pragma unroll
          for (int term = 0; term < kTerms; ++term)
            held[i][term] = load_four(a.x[term] + row * a.x_strides[term], k, a.channels, a.x_vectors[term]);
        }
#pragma unroll
        for (int i = 0; i < kRowsOfThread; ++i) {
          const int64_t row = first + threadIdx.y + i * blockDim.y;
          if (row >= last) break;
          float4 v = held[i][0];
#pragma unroll
          for (int term = 1; term < kTerms; ++term) {
            const float4& other = held[i][term];
            v = {__fadd_rn(v.x, other.x), __fadd_rn(v.y, other.y), __fadd_rn(v.z, other.z),
                 __fadd_rn(v.w, other.w)};
          }
          store_four_as<T>(y + row * a.y_stride, k, a.channels, a.y_vectors,
                           {leaky_product(v.x, a.factor, a.slope), leaky_product(v.y, a.factor, a.slope),
                            leaky_product(v.z, a.factor, a.slope), leaky_product(v.w, a.factor, a.slope)});
        }
      },
      [&](int64_t first, int64_t last) {
        if (k >= a.channels) return;
        for (int64_t row = first + threadIdx.y; row < last; row += blockDim.y)
          store_four_as<T>(y + row * a.y_stride, k, a.channels, a.y_vectors, float4{});
      });
}

template <typename T>
auto* sum_kernel_of(int terms) {
  return terms == 1 ? sum_kernel<1, T> : terms == 2 ? sum_kernel<2, T> : sum_kernel<3, T>;
}

struct DoubleArguments {
  const float* x;
  int64_t x_stride;
  bool x_vectors;
  int channels, rows;  // of a block, of x
  SegmentRows segments;
  const float *weight, *bias;
  float* y;
  int64_t y_stride;
  bool y_vectors;
};

__device__ inline float4 fused(const float4& a, const float4& b, const float4& c) {
  return {__fmaf_rn(a.x, b.x, c.x), __fmaf_rn(a.y, b.y, c.y), __fmaf_rn(a.z, b.z, c.z),
          __fmaf_rn(a.w, b.w, c.w)};
}

__global__ void __launch_bounds__(kThreads) double_kernel(const DoubleArguments a) {
  const int k = first_channel();
  const auto constant = [&](const float* row) { return load_four(row, k, a.channels, false); };
  const float4 w0 = constant(a.weight), w1 = constant(a.weight + a.channels),
               w2 = constant(a.weight + 2 * a.channels), bias = constant(a.bias);
  wait_for_inputs();
  const int64_t begin = int64_t{blockIdx.x} * a.rows;
  const auto store = [&](int64_t row, const float4& v) {
    store_four_as<float>(a.y + row * a.y_stride, k, a.channels, a.y_vectors, v);
  };
  each_piece(
      a.segments, begin, min(begin + a.rows, a.segments.total_rows),
      [&](int segment, int64_t first, int64_t last) {
        if (k >= a.channels) return;
        const int64_t end = a.segments.end(segment);
        const auto load = [&](int64_t row) {
          return row < end ? load_four(a.x + row * a.x_stride, k, a.channels, a.x_vectors) : float4{};
        };
#pragma unroll
        for (int i = 0; i < kRowsOfThread; ++i) {
          const int64_t row = first + threadIdx.y + i * blockDim.y;
          if (row >= last) break;
          const float4 own = load(row), next = load(row + 1);
          store(2 * row, fused(own, w1, bias));
          store(2 * row + 1, fused(next, w0, fused(own, w2, bias)));
        }
      },
      [&](int64_t first, int64_t last) {
        if (k >= a.channels) return;
        for (int64_t row = 2 * first + threadIdx.y; row < 2 * last; row += blockDim.y) store(row, float4{});
      });
}

// A block for each segment.
__global__ void __launch_bounds__(kThreads)
    mirror_kernel(const SegmentRows segments, float* x, int64_t stride, int channels) {
  wait_for_inputs();
  float* const first = x + segments.begin(static_cast<int>(blockIdx.x)) * stride;
  for (int c = static_cast<int>(threadIdx.x); c < channels; c += kThreads) first[c] = first[2 * stride + c];
}

}  // namespace

void segment_sum(Context& ctx, std::span<const TensorView> x, const Segments& segments, float factor,
                 float slope, TensorView y) {
  const RowGrid rows = row_grid(y.dim(0), y.dim(1));
  SumArguments arguments{.terms = static_cast<int>(x.size()),
                         .channels = static_cast<int>(y.dim(1)),
                         .rows = rows.rows,
                         .segments = segment_rows(segments),
                         .factor = factor,
                         .slope = slope,
                         .y = y.data(),
                         .y_stride = y.stride(0),
                         .y_vectors = has_four_rows(y)};
  for (size_t i = 0; i < x.size(); ++i) {
    arguments.x[i] = x[i].as<float>();
    arguments.x_strides[i] = x[i].stride(0);
    arguments.x_vectors[i] = has_vector_rows(x[i]);
  }
  with_float_type(y.dtype(), [&](auto type) {
    launch(ctx, "segment_sum", rows.grid, sum_kernel_of<decltype(type)>(arguments.terms), arguments);
  });
}

void mirror_first_rows(Context& ctx, const Segments& segments, TensorView x) {
  if (segments.count() == 0) return;
  launch(ctx, "mirror_first_rows", {dim3(static_cast<unsigned>(segments.count())), dim3(kThreads)},
         mirror_kernel, segment_rows(segments), x.as<float>(), x.stride(0), static_cast<int>(x.dim(1)));
}

void double_rows(Context& ctx, TensorView x, const Segments& segments, TensorView weight, TensorView bias,
                 TensorView y) {
  const RowGrid rows = row_grid(x.dim(0), x.dim(1));
  const DoubleArguments arguments{.x = x.as<float>(),
                                  .x_stride = x.stride(0),
                                  .x_vectors = has_vector_rows(x),
                                  .channels = static_cast<int>(x.dim(1)),
                                  .rows = rows.rows,
                                  .segments = segment_rows(segments),
                                  .weight = weight.as<float>(),
                                  .bias = bias.as<float>(),
                                  .y = y.as<float>(),
                                  .y_stride = y.stride(0),
                                  .y_vectors = has_four_rows(y)};
  launch(ctx, "double_rows", rows.grid, double_kernel, arguments);
}

}  // namespace shoal::ops::cuda
