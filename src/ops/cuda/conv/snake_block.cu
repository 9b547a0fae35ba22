// A snake block as two kernels for each convolution: the factors of its norm, from the sums that the
// convolution before it has left, and the convolution with norm, snake and residual in it (styled_conv.cuh).
//
// Moments are of one pass: sums and sums of squares, f32 over 64 or 128 rows, f64 over these. A mean of m
// standard deviations costs about m^2 2^-22 of the variance: less than the rounding of the next operand for
// any m below 60.
#include <algorithm>

#include "ops/cuda/conv/styled_conv.cuh"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/operands/products.h"
#include "ops/cuda/rows/with_type.cuh"
#include "ops/cuda_backend.h"
#include "ops/snake_block.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kSumThreads = 256;
constexpr int kFactorChannels = 32, kFactorThreads = 32;  // of a block: that share a channel's pieces

struct SumArguments {
  SegmentRows segments;
  const float* x;  // [rows, channels]
  int channels, step;
  float* sums;  // of StyledSums
};

// A block: a piece of `step` rows. A thread adds up every n-th row of four channels, then the threads of a
// channel are added in order.
__global__ void __launch_bounds__(kSumThreads) sum_rows_kernel(const SumArguments a) {
  __shared__ float4 sums[kSumThreads], squares[kSumThreads];
  wait_for_inputs();
  const SegmentPiece piece = piece_of(a.segments, blockIdx.x, a.step);
  if (piece.segment < 0) return;
  const int fours = a.channels / 4, own = static_cast<int>(threadIdx.x) / fours,
            four = static_cast<int>(threadIdx.x) % fours, sharers = kSumThreads / fours;
  const int64_t begin = a.segments.begin(piece.segment);
  const float* const x = a.x + (begin + piece.first) * a.channels + 4 * four;
  float4 sum{}, square{};
#pragma unroll 4
  for (int row = own; row < piece.count; row += sharers) {
    const float4 v = *reinterpret_cast<const float4*>(x + int64_t{row} * a.channels);
    sum = {__fadd_rn(sum.x, v.x), __fadd_rn(sum.y, v.y), __fadd_rn(sum.z, v.z), __fadd_rn(sum.w, v.w)};
    square = {__fmaf_rn(v.x, v.x, square.x), __fmaf_rn(v.y, v.y, square.y), __fmaf_rn(v.z, v.z, square.z),
              __fmaf_rn(v.w, v.w, square.w)};
  }
  sums[threadIdx.x] = sum;
  squares[threadIdx.x] = square;
  __syncthreads();
  float* const to =
      a.sums + StyledSums::place(begin, piece.segment, piece.first / a.step, a.step) * 2 * a.channels;
  for (int i = static_cast<int>(threadIdx.x); i < 2 * a.channels; i += kSumThreads) {
    const float* const from =
        reinterpret_cast<const float*>(i < a.channels ? sums : squares) + i % a.channels;
    float all = 0.0f;
    for (int other = 0; other < sharers; ++other) all = __fadd_rn(all, from[other * a.channels]);
    to[i] = all;
  }
}

struct FactorArguments {
  SegmentRows segments;
  const float* sums;
  int channels, step;
  const float* style;  // [segments, 2, channels]
  int64_t style_stride;
  float eps;
  float* factors;  // [segments, 2, channels]
};

// y = (1 + gamma) (x - mean) / sqrt(var + eps) + beta as scale x + shift. A block: a segment, 32 channels.
__global__ void __launch_bounds__(kFactorChannels* kFactorThreads) factor_kernel(const FactorArguments a) {
  __shared__ double sums[kFactorThreads][kFactorChannels + 1], squares[kFactorThreads][kFactorChannels + 1];
  wait_for_inputs();
  const int segment = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x),
            warp = static_cast<int>(threadIdx.y), first = static_cast<int>(blockIdx.y) * kFactorChannels;
  const int64_t rows = a.segments.rows(segment), pieces = (rows + a.step - 1) / a.step;
  const float* const from =
      a.sums + StyledSums::place(a.segments.begin(segment), segment, 0, a.step) * 2 * a.channels + first +
      lane;
  double sum = 0, square = 0;
#pragma unroll 8
  for (int64_t piece = warp; piece < pieces; piece += kFactorThreads) {
    sum += static_cast<double>(from[piece * 2 * a.channels]);
    square += static_cast<double>(from[(piece * 2 + 1) * a.channels]);
  }
  sums[warp][lane] = sum;
  squares[warp][lane] = square;
  __syncthreads();
  // A warp finishes a channel.
  sum = sums[lane][warp], square = squares[lane][warp];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(~0u, sum, distance);
    square += __shfl_xor_sync(~0u, square, distance);
  }
  if (lane > 0) return;
  const int channel = first + warp;
  const double mean = sum / static_cast<double>(rows);
  const double own_variance = square / static_cast<double>(rows) - mean * mean;
  const double variance = own_variance < 0 ? 0 : own_variance;  // NaN stays
  const float* const style = a.style + segment * a.style_stride + channel;
  const double scale = (1.0 + static_cast<double>(style[0])) / sqrt(variance + static_cast<double>(a.eps));
  float* const to = a.factors + int64_t{segment} * 2 * a.channels + channel;
  to[0] = static_cast<float>(scale);
  to[a.channels] = static_cast<float>(static_cast<double>(style[a.channels]) - mean * scale);
}

// The kernels of a block, in the order in which they run.
class SnakeBlockRun {
 public:
  SnakeBlockRun(Context& ctx, const Segments& segments, int64_t channels, float eps)
      : ctx_(ctx),
        segments_(segments),
        rows_(segment_rows(segments)),
        channels_(static_cast<int>(channels)),
        step_(channels == 128 ? StyledSizes<128>::kGroupRows : StyledSizes<256>::kGroupRows),
        eps_(eps),
        sums_(ctx.workspace->alloc(DType::f32, {StyledSums::places(segments, step_), 2 * channels})),
        factors_(ctx.workspace->alloc(DType::f32, {segments.count(), 2 * channels})) {}

  // The sums of x.
  void sum(TensorView x) {
    const SumArguments arguments{.segments = rows_,
                                 .x = x.as<float>(),
                                 .channels = channels_,
                                 .step = step_,
                                 .sums = sums_.as<float>()};
    const Grid grid{.blocks = dim3(static_cast<unsigned>(most_pieces(segments_, step_))),
                    .threads = dim3(kSumThreads)};
    launch(ctx_, "sums of rows", grid, sum_rows_kernel, arguments);
  }

  // y = before + conv(snake(adain(x))), where the last sums are those of x.  before: may be empty.
  void convolve(TensorView x, const SnakeUnit::Half& half, TensorView before, TensorView y, bool with_sums) {
    find_factors(half);
    const PackedMatrix& conv = *half.conv;
    const StyledConvArguments arguments = arguments_of(x, half, before, y, with_sums);
    with_operand_type(conv.format.operand, [&](auto type) { launch_conv<decltype(type)>(arguments); });
  }

 private:
  void find_factors(const SnakeUnit::Half& half) {
    const FactorArguments arguments{.segments = rows_,
                                    .sums = sums_.as<float>(),
                                    .channels = channels_,
                                    .step = step_,
                                    .style = half.style.as<float>(),
                                    .style_stride = half.style.stride(0),
                                    .eps = eps_,
                                    .factors = factors_.as<float>()};
    const Grid grid{.blocks = dim3(static_cast<unsigned>(segments_.count()),
                                   static_cast<unsigned>(channels_ / kFactorChannels)),
                    .threads = dim3(kFactorChannels, kFactorThreads)};
    launch(ctx_, "factors of a norm", grid, factor_kernel, arguments);
  }

  StyledConvArguments arguments_of(TensorView x, const SnakeUnit::Half& half, TensorView before, TensorView y,
                                   bool with_sums) const {
    const PackedMatrix& conv = *half.conv;
    const bool narrow = channels_ == 128;
    return {
        .weights = weight_map(conv.storage.view().data(), shape_of(conv),
                              narrow ? StyledSizes<128>::kStageTileRows : StyledSizes<256>::kStageTileRows,
                              narrow ? StyledSizes<128>::kStageTiles : StyledSizes<256>::kStageTiles),
        .segments = rows_,
        .x = x.as<float>(),
        .factors = factors_.as<float>(),
        .alpha = half.alpha.as<float>(),
        .bias = conv.bias.empty() ? nullptr : conv.bias.as<float>(),
        .before = before.empty() ? nullptr : before.as<float>(),
        .y = y.as<float>(),
        .sums = with_sums ? sums_.as<float>() : nullptr,
        .taps = static_cast<int>(conv.taps),
        .dilation = static_cast<int>(half.dilation),
        .pieces = static_cast<int>(
            most_pieces(segments_, narrow ? StyledSizes<128>::kRows : StyledSizes<256>::kRows))};
  }
  template <typename T>
  void launch_conv(const StyledConvArguments& arguments) {
    if (channels_ == 128)
      launch_conv<T, 128>(arguments);
    else
      launch_conv<T, 256>(arguments);
  }
  template <typename T, int kChannels>
  void launch_conv(const StyledConvArguments& arguments) {
    const int blocks = std::min(arguments.pieces, machine_of(ctx_).multiprocessors);
    launch(ctx_, "styled convolution",
           {.blocks = dim3(static_cast<unsigned>(blocks)),
            .threads = dim3(StyledSizes<kChannels>::kThreads),
            .shared_bytes = static_cast<size_t>(StyledShared<kChannels>::kBytes)},
           styled_conv_kernel<T, kChannels>, arguments);
  }

  Context& ctx_;
  const Segments& segments_;
  const SegmentRows rows_;
  const int channels_, step_;
  const float eps_;
  const TensorView sums_, factors_;
};

bool has_kernel(const SnakeUnit::Half& half, const SnakeUnit::Half& like) {
  const PackedMatrix& conv = *half.conv;
  return (conv.outputs == 128 || conv.outputs == 256) && conv.format.operand != DType::f32 &&
         conv.format == like.conv->format && (conv.taps - 1) * half.dilation <= kStyledMostSpan;
}

}  // namespace

bool has_snake_block(const Context& ctx, std::span<const SnakeUnit> units) {
  const SnakeUnit::Half& like = units[0].first;
  return has_wgmma(ctx) &&
         machine_of(ctx).shared_bytes >= std::max(StyledShared<128>::kBytes, StyledShared<256>::kBytes) &&
         std::ranges::all_of(units, [&](const SnakeUnit& unit) {
           return has_kernel(unit.first, like) && has_kernel(unit.second, like);
         });
}

void snake_block(Context& ctx, TensorView x, const Segments& segments, std::span<const SnakeUnit> units,
                 float eps, TensorView y) {
  for (const TensorView& view : {x, y})
    CHECK(reinterpret_cast<uintptr_t>(view.data()) % 16 == 0, "snake_block: rows are not aligned");
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView between = ctx.workspace->like(x);
  // Where the units' results go in turn: reading and writing the same rows takes 1.4 to 2.5 times as long
  // (H200).
  const TensorView results[] = {y, units.size() > 1 ? ctx.workspace->like(x) : y};
  SnakeBlockRun run(ctx, segments, x.dim(1), eps);
  run.sum(x);
  TensorView held = x;
  for (size_t left = units.size(); left-- > 0;) {
    const SnakeUnit& unit = units[units.size() - 1 - left];
    const TensorView result = results[left % 2];
    run.convolve(held, unit.first, {}, between, true);
    run.convolve(between, unit.second, held, result, left > 0);
    held = result;
  }
}

}  // namespace shoal::ops::cuda
