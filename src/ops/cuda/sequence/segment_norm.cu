// AdaIN in two passes over its input: moments of parts of a segment, then the norm, whose blocks merge the
// moments of all parts for themselves (some kilobytes, read from L2), so that no launch stands between.
//
// Order: a segment is cut into at most kParts parts of equal size, which its number of rows alone decides.
// Thread r of a part takes its rows r, r + 32, ...; eight of them at a time give a mean and the squares about
// it, which are merged into those of the rows before (Chan, Golub, LeVeque 1979). The threads' results, and
// then those of the parts, are merged in double about the first one's mean, in a fixed order.
#include <algorithm>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/rows/segment_rows.cuh"
#include "ops/cuda/rows/snake.cuh"
#include "ops/cuda/rows/with_type.cuh"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kParts = 32;
constexpr int kLeastPart = 64;       // rows
constexpr int kMomentChannels = 32;  // of a block: 128 bytes of each row
constexpr int kMomentFours = kMomentChannels / 4;
constexpr int kRowThreads = kThreads / kMomentFours;  // that share the rows of a part
constexpr int kTogether = 8;                          // rows of a thread that are on their way at once
constexpr int kNormChannels = 128;                    // of a block
constexpr int kNormFours = kNormChannels / 4;
constexpr int kNormRowThreads = kThreads / kNormFours;
constexpr int kNormTogether = 4;    // rows of a thread that are on their way at once
constexpr int kMostNormRows = 512;  // of a block
constexpr int kNormBlocks = 2;      // of a multiprocessor, when there are few rows

// How the rows of a segment are cut.
struct Parts {
  int64_t rows, part_rows;

  __device__ explicit Parts(int64_t all) : rows(all) {
    const int64_t share = (all + kParts - 1) / kParts;
    part_rows = max(int64_t{kLeastPart}, (share + kRowThreads - 1) / kRowThreads * kRowThreads);
  }
  __device__ int count() const { return static_cast<int>((rows + part_rows - 1) / part_rows); }
  __device__ int rows_of(int part) const { return static_cast<int>(min(part_rows, rows - part * part_rows)); }
};

struct AdainArguments {
  const float* x;
  int64_t x_stride;
  int channels;
  bool x_vectors;  // has_vector_rows
  SegmentRows segments;
  float* moments;  // [segments, kParts, 2, channels]: means, squares about them
  const float* style;
  int64_t style_stride;
  float eps;
  const float* alpha;  // [channels]; null: no snake
  float slope;
  void* y;  // dense
  bool y_vectors;
  int norm_rows;  // of a block

  __device__ float* moments_of(int segment, int part) const {
    return moments + (int64_t{segment} * kParts + part) * 2 * channels;
  }
};

// Mean and squares about it of a number of values of four channels.
struct FourMoments {
  float count = 0;
  float mean[4] = {}, squares[4] = {};

  __device__ void add(const float4 (&rows)[kTogether], int valid) {
    const float n = static_cast<float>(valid), all = __fadd_rn(count, n);
    const float share = __fdiv_rn(n, all), weight = __fmul_rn(count, share);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const auto value = [&](int i) { return (&rows[i].x)[c]; };
      float sum = 0.0f, own = 0.0f;
#pragma unroll
      for (int i = 0; i < kTogether; ++i)
        if (i < valid) sum = __fadd_rn(sum, value(i));
      const float middle = __fdiv_rn(sum, n);
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const float off = __fsub_rn(value(i), middle);
        if (i < valid) own = __fmaf_rn(off, off, own);
      }
      const float away = __fsub_rn(middle, mean[c]);
      mean[c] = __fmaf_rn(away, share, mean[c]);
      squares[c] = __fadd_rn(squares[c], __fmaf_rn(__fmul_rn(away, away), weight, own));
    }
    count = all;
  }
};

// Sums of moments about a pivot, from which the total moments follow.
struct MergedMoments {
  double sum = 0, squares = 0;  // of differences to the pivot

  __device__ void add(double count, float mean, float own, float pivot) {
    const double off = static_cast<double>(mean) - static_cast<double>(pivot);
    sum += count * off;
    squares += static_cast<double>(own) + count * (off * off);
  }
  __device__ double mean(double count, float pivot) const { return static_cast<double>(pivot) + sum / count; }
  // About the mean; not below 0, NaN stays.
  __device__ double squares_about_mean(double count) const {
    const double left = squares - sum * (sum / count);
    return left < 0 ? 0 : left;
  }
};

// A block: a part of a segment, kMomentChannels channels.  Grid: parts, channels, segments.
__global__ void __launch_bounds__(kThreads) moments_kernel(const AdainArguments a) {
  __shared__ float means[kRowThreads][kMomentChannels + 1], squares[kRowThreads][kMomentChannels + 1];
  wait_for_inputs();
  const int segment = static_cast<int>(blockIdx.z), part = static_cast<int>(blockIdx.x);
  const Parts parts(a.segments.rows(segment));
  if (part >= parts.count()) return;
  const int rows = parts.rows_of(part), first_channel = static_cast<int>(blockIdx.y) * kMomentChannels;
  const int four = static_cast<int>(threadIdx.x) % kMomentFours,
            own = static_cast<int>(threadIdx.x) / kMomentFours;
  const int k = first_channel + 4 * four;
  const float* const x = a.x + (a.segments.begin(segment) + part * parts.part_rows) * a.x_stride;

  FourMoments moments;
  for (int begin = own; begin < rows; begin += kTogether * kRowThreads) {
    float4 held[kTogether];
    int valid = 0;
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int row = begin + i * kRowThreads;
      held[i] = row < rows ? load_four(x + row * a.x_stride, k, a.channels, a.x_vectors) : float4{};
      valid += row < rows;
    }
    moments.add(held, valid);
  }
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    means[own][4 * four + c] = moments.mean[c];
    squares[own][4 * four + c] = moments.squares[c];
  }
  __syncthreads();

  // Eight threads for each channel, four of the rows' threads for each of them.
  constexpr int kEach = kRowThreads / 8;
  const int channel = static_cast<int>(threadIdx.x) / 8, eighth = static_cast<int>(threadIdx.x) % 8;
  const float pivot = means[0][channel];
  MergedMoments merged;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int from = eighth * kEach + i;
    const int count =
        (rows - from + kRowThreads - 1) / kRowThreads;  // none when it had no row: it is below 1
    if (from < rows) merged.add(count, means[from][channel], squares[from][channel], pivot);
  }
#pragma unroll
  for (int distance = 4; distance > 0; distance /= 2) {
    merged.sum += __shfl_xor_sync(~0u, merged.sum, distance);
    merged.squares += __shfl_xor_sync(~0u, merged.squares, distance);
  }
  if (eighth == 0 && first_channel + channel < a.channels) {
    float* const to = a.moments_of(segment, part) + first_channel + channel;
    to[0] = static_cast<float>(merged.mean(rows, pivot));
    to[a.channels] = static_cast<float>(merged.squares_about_mean(rows));
  }
}

// The factors of a segment's norm: y = (x - mean) * scale + shift.
struct SharedFactors {
  float mean[kNormChannels], scale[kNormChannels], shift[kNormChannels];
};
struct SharedMerge {
  double sum[kNormRowThreads][kNormChannels], squares[kNormRowThreads][kNormChannels];
};

// The factors of one segment; by all threads of a block, whose first channel is `first_channel`.
__device__ void merge_parts(const AdainArguments& a, int segment, int first_channel, SharedMerge& merge,
                            SharedFactors& factors) {
  const Parts parts(a.segments.rows(segment));
  const int four = static_cast<int>(threadIdx.x), own = static_cast<int>(threadIdx.y);
  const int k = first_channel + 4 * four, count = parts.count();
  const bool vectors = a.channels % 4 == 0;
  const float* const pivots = a.moments_of(segment, 0);
  const float4 pivot = load_four(pivots, k, a.channels, vectors);
  MergedMoments merged[4];
#pragma unroll
  for (int i = 0; i < kParts / kNormRowThreads; ++i) {
    const int part = own + i * kNormRowThreads;
    if (part >= count) break;
    const float* const from = a.moments_of(segment, part);
    const float4 mean = load_four(from, k, a.channels, vectors);
    const float4 squares = load_four(from + a.channels, k, a.channels, vectors);
    const double rows = parts.rows_of(part);
    merged[0].add(rows, mean.x, squares.x, pivot.x), merged[1].add(rows, mean.y, squares.y, pivot.y);
    merged[2].add(rows, mean.z, squares.z, pivot.z), merged[3].add(rows, mean.w, squares.w, pivot.w);
  }
  __syncthreads();  // the segment before has been read
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    merge.sum[own][4 * four + c] = merged[c].sum;
    merge.squares[own][4 * four + c] = merged[c].squares;
  }
  __syncthreads();
  const int channel = thread_of_block();
  if (channel < kNormChannels && first_channel + channel < a.channels) {
    MergedMoments all;
#pragma unroll
    for (int i = 0; i < kNormRowThreads; ++i) {
      all.sum += merge.sum[i][channel];
      all.squares += merge.squares[i][channel];
    }
    const double rows = static_cast<double>(parts.rows);
    const double variance = all.squares_about_mean(rows) / rows;
    const float* const style = a.style + segment * a.style_stride + first_channel + channel;
    factors.mean[channel] = static_cast<float>(all.mean(rows, pivots[first_channel + channel]));
    factors.scale[channel] =
        static_cast<float>((1.0 + static_cast<double>(style[0])) / sqrt(variance + a.eps));
    factors.shift[channel] = style[a.channels];
  }
  __syncthreads();
}

__device__ inline float leaky(float z, float slope) { return z < 0.0f ? __fmul_rn(z, slope) : z; }

// A block: norm_rows rows of the buffer, kNormChannels channels.
template <bool kSnake, typename T>
__global__ void __launch_bounds__(kThreads) norm_kernel(const AdainArguments a) {
  __shared__ SharedMerge merge;
  __shared__ SharedFactors factors;
  const int first_channel = static_cast<int>(blockIdx.y) * kNormChannels;
  const int four = static_cast<int>(threadIdx.x), k = first_channel + 4 * four;
  float4 alpha{}, inverse{};
  if constexpr (kSnake) {
    alpha = load_four(a.alpha, k, a.channels, false);
    inverse = {__frcp_rn(alpha.x), __frcp_rn(alpha.y), __frcp_rn(alpha.z), __frcp_rn(alpha.w)};
  }
  wait_for_inputs();
  T* const y = static_cast<T*>(a.y);
  const auto row_of_y = [&](int64_t row) { return y + row * a.channels; };
  const int64_t begin = int64_t{blockIdx.x} * a.norm_rows;
  each_piece(
      a.segments, begin, min(begin + a.norm_rows, a.segments.total_rows),
      [&](int segment, int64_t first, int64_t last) {
        merge_parts(a, segment, first_channel, merge, factors);
        if (k >= a.channels) return;
        const float4 mean = *reinterpret_cast<const float4*>(&factors.mean[4 * four]);
        const float4 scale = *reinterpret_cast<const float4*>(&factors.scale[4 * four]);
        const float4 shift = *reinterpret_cast<const float4*>(&factors.shift[4 * four]);
        const auto normed = [&](float x, float m, float s, float b, float own, float reciprocal) {
          const float z = __fmaf_rn(__fsub_rn(x, m), s, b);
          if constexpr (kSnake) return snake_value(z, own, reciprocal);
          return leaky(z, a.slope);
        };
        for (int64_t row = first + threadIdx.y; row < last; row += kNormTogether * kNormRowThreads) {
          float4 held[kNormTogether];
#pragma unroll
          for (int i = 0; i < kNormTogether; ++i)
            if (row + i * kNormRowThreads < last)
              held[i] = load_four(a.x + (row + i * kNormRowThreads) * a.x_stride, k, a.channels, a.x_vectors);
#pragma unroll
          for (int i = 0; i < kNormTogether; ++i) {
            if (row + i * kNormRowThreads >= last) break;
            const float4 v = held[i];
            store_four_as<T>(row_of_y(row + i * kNormRowThreads), k, a.channels, a.y_vectors,
                             {normed(v.x, mean.x, scale.x, shift.x, alpha.x, inverse.x),
                              normed(v.y, mean.y, scale.y, shift.y, alpha.y, inverse.y),
                              normed(v.z, mean.z, scale.z, shift.z, alpha.z, inverse.z),
                              normed(v.w, mean.w, scale.w, shift.w, alpha.w, inverse.w)});
          }
        }
      },
      [&](int64_t first, int64_t last) {
        if (k >= a.channels) return;
        for (int64_t row = first + threadIdx.y; row < last; row += kNormRowThreads)
          store_four_as<T>(row_of_y(row), k, a.channels, a.y_vectors, float4{});
      });
}

// Rows of a norm's block: as many as keep kNormBlocks blocks of every multiprocessor busy.
int norm_rows(int64_t rows, int64_t channel_blocks, int multiprocessors) {
  const int64_t share = blocks_for(rows * channel_blocks, int64_t{kNormBlocks} * multiprocessors);
  return static_cast<int>(std::clamp<int64_t>(blocks_for(share, kNormRowThreads) * kNormRowThreads,
                                              kNormTogether * kNormRowThreads, kMostNormRows));
}

}  // namespace

void adain(Context& ctx, TensorView x, const Segments& segments, TensorView style, float eps,
           const SegmentActivation& activation, TensorView y) {
  const Workspace::Scope scope(*ctx.workspace);
  const int64_t channels = x.dim(1), channel_blocks = blocks_for(channels, kNormChannels);
  const TensorView moments =
      ctx.workspace->alloc(DType::f32, {std::max<int64_t>(1, segments.count()) * kParts * 2, channels});
  const bool snake = !activation.snake_alpha.empty();
  const AdainArguments arguments{
      .x = x.as<float>(),
      .x_stride = x.stride(0),
      .channels = static_cast<int>(channels),
      .x_vectors = has_vector_rows(x),
      .segments = segment_rows(segments),
      .moments = moments.as<float>(),
      .style = style.as<float>(),
      .style_stride = style.stride(0),
      .eps = eps,
      .alpha = snake ? activation.snake_alpha.as<float>() : nullptr,
      .slope = activation.slope,
      .y = y.data(),
      .y_vectors = has_four_rows(y),
      .norm_rows = norm_rows(x.dim(0), channel_blocks, state_of(ctx).multiprocessors())};
  if (segments.count() > 0) {
    const Grid grid{.blocks = dim3(kParts, static_cast<unsigned>(blocks_for(channels, kMomentChannels)),
                                   static_cast<unsigned>(segments.count())),
                    .threads = dim3(kThreads)};
    launch(ctx, "adain moments", grid, moments_kernel, arguments);
  }
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks_for(x.dim(0), arguments.norm_rows)),
                                 static_cast<unsigned>(channel_blocks)),
                  .threads = dim3(kNormFours, kNormRowThreads)};
  with_float_type(y.dtype(), [&](auto type) {
    using T = decltype(type);
    launch(ctx, "adain", grid, snake ? norm_kernel<true, T> : norm_kernel<false, T>, arguments);
  });
}

}  // namespace shoal::ops::cuda
