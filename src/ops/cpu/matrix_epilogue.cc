#include "ops/cpu/matrix_epilogue.h"

#include <cmath>

namespace shoal::ops::cpu {
namespace {

constexpr int64_t kMostOutputs = 64;

float gelu(float x) { return 0.5f * x * (1.0f + std::erf(x * 0.70710678f)); }

void activate(Activation activation, float* v, int64_t count) {
  if (activation == Activation::gelu)
    for (int64_t i = 0; i < count; ++i) v[i] = gelu(v[i]);
  if (activation == Activation::tanh)
    for (int64_t i = 0; i < count; ++i) v[i] = std::tanh(v[i]);
}

}  // namespace

void finish_row(const float* sums, int64_t first, int64_t count, const PackedMatrix& weight,
                const Epilogue& epilogue, float* y) {
  float v[kMostOutputs];
  CHECK(count <= kMostOutputs);
  for (int64_t i = 0; i < count; ++i) v[i] = sums[i];
  if (!weight.bias.empty()) {
    const float* bias = weight.bias.as<float>() + first;
    for (int64_t i = 0; i < count; ++i) v[i] += bias[i];
  }
  activate(epilogue.activation, v, count);
  if (!epilogue.scale.empty()) {
    const float* scale = epilogue.scale.as<float>() + first;
    for (int64_t i = 0; i < count; ++i) v[i] *= scale[i];
  }
  if (epilogue.accumulate)
    for (int64_t i = 0; i < count; ++i) y[i] += v[i];
  else
    for (int64_t i = 0; i < count; ++i) y[i] = v[i];
}

void finish_swiglu_row(const float* gate, const float* up, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
}

}  // namespace shoal::ops::cpu
