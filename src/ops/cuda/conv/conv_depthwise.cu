// One kernel per channel: bound by memory, and by its latency for the few rows of a codec's frames. Sums as
// on the CPU: products rounded, the oldest tap first, then the bias.
#include "ops/cuda/conv/conv_input.cuh"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kMostTaps = 8;  // whose inputs a thread has on their way together

struct DepthwiseArguments {
  ConvSource source;
  const float* weight;  // [taps, channels]
  const float* bias;    // [channels], or null
  float* y;
  int64_t y_stride;
};

// A warp takes 32 channels of one row.
__global__ void __launch_bounds__(kThreads) depthwise_kernel(const __grid_constant__ DepthwiseArguments a) {
  const ConvSource& s = a.source;
  const int taps = s.look_back + 1;
  const int c = static_cast<int>(blockIdx.y * 32 + threadIdx.x % 32);
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  wait_for_inputs();
  const int sequence = sequence_of(s, row);
  if (row >= s.rows || c >= s.channels) return;
  const int64_t t = row - s.begin_of(sequence);
  const float* const x = s.x + row * s.channels + c;
  const float* const history = taps > 1 ? s.history_of(sequence) : nullptr;
  const float alpha = s.alpha ? s.alpha[c] : 0.0f, inverse = snake_inverse(alpha);
  float sum = 0.0f;
  for (int first = 0; first < taps; first += kMostTaps) {
    float values[kMostTaps], weights[kMostTaps];
#pragma unroll
    for (int i = 0; i < kMostTaps; ++i) {
      const int tap = first + i, back = s.look_back - tap;
      if (tap >= taps) break;
      weights[i] = __ldg(a.weight + static_cast<int64_t>(tap) * s.channels + c);
      values[i] =
          t >= back ? x[-static_cast<int64_t>(back) * s.channels] : history[(t + tap) * s.channels + c];
    }
#pragma unroll
    for (int i = 0; i < kMostTaps; ++i) {
      const int tap = first + i, back = s.look_back - tap;
      if (tap >= taps) break;
      if (s.alpha && t >= back) values[i] = snake_value(values[i], alpha, inverse);
      sum = __fadd_rn(sum, __fmul_rn(weights[i], values[i]));
    }
  }
  a.y[row * a.y_stride + c] = a.bias ? __fadd_rn(sum, a.bias[c]) : sum;
}

}  // namespace

void depthwise_conv1d(Context& ctx, const ConvInput& input, TensorView weight, TensorView bias,
                      TensorView y) {
  const DepthwiseArguments arguments{.source = source_of(input, weight.dim(0) - 1),
                                     .weight = weight.as<float>(),
                                     .bias = bias.empty() ? nullptr : bias.as<float>(),
                                     .y = y.as<float>(),
                                     .y_stride = y.stride(0)};
  const ConvSource& source = arguments.source;
  launch(ctx, "depthwise convolution",
         {.blocks = dim3(static_cast<unsigned>(blocks_for(source.rows, kThreads / 32)),
                         static_cast<unsigned>(blocks_for(source.channels, 32))),
          .threads = dim3(kThreads)},
         depthwise_kernel, arguments);
  update_history(ctx, source, DType::f32);
}

}  // namespace shoal::ops::cuda
