// Values in f32, and as memory holds them: f32, bf16, f16, or bytes.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

namespace shoal::ops::cuda {

__device__ inline float widened(float value) { return value; }
__device__ inline float widened(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline float widened(__half value) { return __half2float(value); }

template <typename T>
__device__ inline T narrowed_value(float value) {
  if constexpr (std::is_same_v<T, float>) return value;
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return __float2bfloat16_rn(value);
  if constexpr (std::is_same_v<T, __half>) return __float2half_rn(value);
  if constexpr (std::is_same_v<T, uint8_t>) return static_cast<uint8_t>(__float2int_rn(value));
}

// Four values to a place that is aligned to them.
template <typename T>
__device__ inline void store_four(T* to, const float4& v) {
  struct alignas(4 * sizeof(T)) Four {
    T value[4];
  };
  *reinterpret_cast<Four*>(to) = {narrowed_value<T>(v.x), narrowed_value<T>(v.y), narrowed_value<T>(v.z),
                                  narrowed_value<T>(v.w)};
}

}  // namespace shoal::ops::cuda
