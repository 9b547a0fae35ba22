#include "ops/cpu/gemm/matrix_epilogue.h"

#include <cmath>

#include "ops/cpu/kernels/vector_kernels.h"

namespace shoal::ops::cpu {
namespace {

constexpr int64_t kMostOutputs = 64;

void activate(Activation activation, float* v, int64_t count) {
  if (activation == Activation::gelu) vector_kernels().gelu(v, v, count);
  if (activation == Activation::gelu_tanh) vector_kernels().gelu_tanh(v, v, count);
  if (activation == Activation::tanh)
    for (int64_t i = 0; i < count; ++i) v[i] = std::tanh(v[i]);
}

// Without activation and scale: most rows of a codec, some only 20 outputs wide, where one pass per step
// would cost more than the product itself.
template <bool kAccumulate>
void store_sums(const float* __restrict sums, const float* __restrict bias, int64_t count,
                float* __restrict y) {
  for (int64_t i = 0; i < count; ++i) {
    const float v = sums[i] + bias[i];
    y[i] = kAccumulate ? y[i] + v : v;
  }
}

}  // namespace

void finish_row(const float* sums, int64_t first, int64_t count, const PackedMatrix& weight,
                const Epilogue& epilogue, float* y) {
  if (epilogue.activation == Activation::none && epilogue.scale.empty() && !weight.bias.empty()) {
    const float* bias = weight.bias.as<float>() + first;
    if (epilogue.accumulate) return store_sums<true>(sums, bias, count, y);
    return store_sums<false>(sums, bias, count, y);
  }
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
  vector_kernels().swiglu(gate, up, y, count);
}

}  // namespace shoal::ops::cpu
