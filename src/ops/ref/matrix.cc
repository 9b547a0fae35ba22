#include "ops/ref/matrix.h"

#include <cmath>

namespace shoal::ops::ref {
namespace {

double weight_at(const Kernel& kernel, int64_t i, int64_t j, int64_t k) {
  return kernel.weight[static_cast<size_t>((i * kernel.second + j) * kernel.size + k)];
}

double bias_at(const Values& bias, int64_t n) { return bias.empty() ? 0.0 : bias[static_cast<size_t>(n)]; }

// Zero before the first frame.
double sample_at(const Values& x, int64_t frame, int64_t channel, int64_t channels) {
  return frame < 0 ? 0.0 : x[static_cast<size_t>(frame * channels + channel)];
}

}  // namespace

Values linear(const Values& x, const Values& w, const Values& bias, int64_t depth) {
  const int64_t rows = static_cast<int64_t>(x.size()) / depth,
                outputs = static_cast<int64_t>(w.size()) / depth;
  Values y;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t n = 0; n < outputs; ++n) {
      double sum = bias_at(bias, n);
      for (int64_t k = 0; k < depth; ++k)
        sum += x[static_cast<size_t>(row * depth + k)] * w[static_cast<size_t>(n * depth + k)];
      y.push_back(sum);
    }
  return y;
}

Values int4_weights(const std::vector<uint8_t>& nibbles, const Values& scales, const Values& minima,
                    int64_t depth, int64_t group) {
  const int64_t row_bytes = (depth + 1) / 2, groups = (depth + group - 1) / group;
  Values weights;
  for (int64_t n = 0; n < static_cast<int64_t>(nibbles.size()) / row_bytes; ++n) {
    for (int64_t k = 0; k < depth; ++k) {
      const uint8_t byte = nibbles[static_cast<size_t>(n * row_bytes + k / 2)];
      const int integer = k % 2 == 0 ? byte % 16 : byte / 16;
      const auto at = static_cast<size_t>(n * groups + k / group);
      weights.push_back(minima[at] + scales[at] * integer);
    }
  }
  return weights;
}

double gelu(double x) { return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0))); }

double gelu_tanh(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

double silu(double x) { return x / (1.0 + std::exp(-x)); }

double snake(double x, double alpha) {
  const double s = std::sin(alpha * x);
  return x + s * s / (alpha + 1e-9);
}

Values causal_conv1d(const Values& x, const Kernel& kernel, int64_t stride, int64_t dilation) {
  const int64_t inputs = kernel.second, frames = static_cast<int64_t>(x.size()) / inputs;
  const int64_t padding = (kernel.size - 1) * dilation + 1 - stride;
  Values y;
  for (int64_t t = 0; t < frames / stride; ++t)
    for (int64_t n = 0; n < kernel.first; ++n) {
      double sum = bias_at(kernel.bias, n);
      for (int64_t c = 0; c < inputs; ++c)
        for (int64_t k = 0; k < kernel.size; ++k)
          sum += weight_at(kernel, n, c, k) * sample_at(x, t * stride + k * dilation - padding, c, inputs);
      y.push_back(sum);
    }
  return y;
}

Values causal_conv_transpose1d(const Values& x, const Kernel& kernel, int64_t stride) {
  const int64_t inputs = kernel.first, outputs = kernel.second,
                frames = static_cast<int64_t>(x.size()) / inputs;
  Values full(static_cast<size_t>(((frames - 1) * stride + kernel.size) * outputs));
  for (size_t i = 0; i < full.size(); ++i) full[i] = bias_at(kernel.bias, static_cast<int64_t>(i) % outputs);
  for (int64_t m = 0; m < frames; ++m)
    for (int64_t k = 0; k < kernel.size; ++k)
      for (int64_t n = 0; n < outputs; ++n)
        for (int64_t c = 0; c < inputs; ++c)
          full[static_cast<size_t>((m * stride + k) * outputs + n)] +=
              weight_at(kernel, c, n, k) * sample_at(x, m, c, inputs);
  full.resize(static_cast<size_t>(frames * stride * outputs));
  return full;
}

Values depthwise_conv1d(const Values& x, const Kernel& kernel) {
  const int64_t channels = kernel.first, frames = static_cast<int64_t>(x.size()) / channels;
  Values y;
  for (int64_t t = 0; t < frames; ++t)
    for (int64_t c = 0; c < channels; ++c) {
      double sum = bias_at(kernel.bias, c);
      for (int64_t k = 0; k < kernel.size; ++k)
        sum += weight_at(kernel, c, 0, k) * sample_at(x, t + k - (kernel.size - 1), c, channels);
      y.push_back(sum);
    }
  return y;
}

}  // namespace shoal::ops::ref
