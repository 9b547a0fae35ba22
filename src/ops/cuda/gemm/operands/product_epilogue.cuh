// What happens to a product's sums before they are stored: the same instructions in every kernel, so that all
// give the same bits. (Explicit roundings: the compiler may fuse a * b + c in one kernel and not in another.)
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "ops/cuda/gemm/operands/products.h"

namespace shoal::ops::cuda {

__device__ inline float activated(float v, Activation activation) {
  switch (activation) {
    case Activation::none:
      return v;
    case Activation::gelu:
      return __fmul_rn(__fmul_rn(0.5f, v), __fadd_rn(1.0f, erff(__fmul_rn(v, 0.70710678118654752f))));
    case Activation::gelu_tanh: {
      const float cubic = __fmul_rn(__fmul_rn(v, v), __fmul_rn(v, 0.044715f));
      const float curve = tanhf(__fmul_rn(0.79788456080286536f, __fadd_rn(v, cubic)));
      return __fmul_rn(__fmul_rn(0.5f, v), __fadd_rn(1.0f, curve));
    }
    case Activation::tanh:
      return tanhf(v);
  }
  return v;  // no value of Activation
}

// x / y to within an ulp, for y in 1 .. 2^126. Without the branches of an exact division, after which values
// of one thread wait for each other.
__device__ inline float quotient(float x, float y) {
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(y));
  const float near = __fmul_rn(x, inverse);
  return __fmaf_rn(__fmaf_rn(-near, y, x), inverse, near);
}

// silu(gate) * up. A gate below -87 gives gate times 2^-126 instead of almost zero; an infinite one gives
// NaN.
__device__ inline float swiglu_value(float gate, float up) {
  constexpr float kMost = 87;  // exp of larger values is outside quotient's divisors
  return __fmul_rn(quotient(gate, __fadd_rn(1.0f, expf(fminf(-gate, kMost)))), up);
}

// bias: 0 if there is none; scale: 1; before: the value in y, or 0.
__device__ inline float epilogue_value(float sum, float bias, float scale, float before,
                                       Activation activation) {
  return __fadd_rn(before, __fmul_rn(scale, activated(__fadd_rn(sum, bias), activation)));
}

__device__ inline void store_value(void* y, int64_t index, DType dtype, float value) {
  if (dtype == DType::f32)
    static_cast<float*>(y)[index] = value;
  else if (dtype == DType::bf16)
    static_cast<__nv_bfloat16*>(y)[index] = __float2bfloat16_rn(value);
  else
    static_cast<__half*>(y)[index] = __float2half_rn(value);
}

// Row `row` and output n of a matrix that is not paired.
__device__ inline void store_product(const ProductEpilogue& epilogue, int64_t row, int64_t n, float sum) {
  const int64_t at = row * epilogue.y_stride + n;
  const float bias = epilogue.bias ? epilogue.bias[n] : 0.0f,
              scale = epilogue.scale ? epilogue.scale[n] : 1.0f;
  const float before =
      epilogue.accumulate ? static_cast<const float*>(epilogue.y)[at] : 0.0f;  // then y is f32
  store_value(epilogue.y, at, epilogue.y_dtype,
              epilogue_value(sum, bias, scale, before, epilogue.activation));
}

// Of a pair.
__device__ inline void store_swiglu(const ProductEpilogue& epilogue, int64_t row, int64_t n, float gate,
                                    float up) {
  store_value(epilogue.y, row * epilogue.y_stride + n, epilogue.y_dtype, swiglu_value(gate, up));
}

}  // namespace shoal::ops::cuda
