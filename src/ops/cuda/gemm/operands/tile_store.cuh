// From the sums of a product to its result in memory, four adjacent outputs at a time.
#pragma once

#include "ops/cuda/gemm/operands/product_epilogue.cuh"
#include "ops/cuda/gemm/operands/tile_arguments.cuh"
#include "ops/cuda/rows/snake.cuh"

namespace shoal::ops::cuda {

using FourFloats = float[4];

__device__ inline void load_four(const float* from, FourFloats& values) {
  const float4 v = *reinterpret_cast<const float4*>(from);
  values[0] = v.x, values[1] = v.y, values[2] = v.z, values[3] = v.w;
}

__device__ inline void add_four(FourFloats& total, const float* shared) {
  FourFloats values;
  load_four(shared, values);
#pragma unroll
  for (int i = 0; i < 4; ++i) total[i] = __fadd_rn(total[i], values[i]);
}

template <typename Pair>
__device__ inline uint32_t bits_of(Pair pair) {
  static_assert(sizeof(pair) == 4);
  return *reinterpret_cast<uint32_t*>(&pair);
}

// As store_value rounds them.
__device__ inline uint32_t rounded_pair(DType dtype, float low, float high) {
  return dtype == DType::bf16 ? bits_of(__floats2bfloat162_rn(low, high))
                              : bits_of(__floats2half2_rn(low, high));
}

// Four values at element `index` of y, aligned to their size.
__device__ inline void store_four(void* y, int64_t index, DType dtype, const FourFloats& values) {
  if (dtype == DType::f32)
    *reinterpret_cast<float4*>(static_cast<float*>(y) + index) =
        make_float4(values[0], values[1], values[2], values[3]);
  else
    *reinterpret_cast<uint2*>(static_cast<uint16_t*>(y) + index) =
        make_uint2(rounded_pair(dtype, values[0], values[1]), rounded_pair(dtype, values[2], values[3]));
}

// Outputs n .. n + 3 of a row; only those below `outputs` exist.
struct OutputPlace {
  int64_t row;
  int n;
};

// The values of y, if the result is added to them; else zeros.
__device__ inline void load_before(const TileArguments& arguments, const OutputPlace& place,
                                   FourFloats& before) {
  const ProductEpilogue& epilogue = arguments.epilogue;
#pragma unroll
  for (float& value : before) value = 0.0f;
  if (!epilogue.accumulate || place.row >= arguments.rows) return;
  const float* const y = static_cast<const float*>(epilogue.y) + place.row * epilogue.y_stride + place.n;
  if (arguments.wide_stores && place.n + 4 <= arguments.outputs) return load_four(y, before);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (place.n + i < arguments.outputs) before[i] = y[i];
}

__device__ inline void store_outputs(const TileArguments& arguments, const OutputPlace& place,
                                     const FourFloats& values) {
  const ProductEpilogue& epilogue = arguments.epilogue;
  const int64_t at = place.row * epilogue.y_stride + place.n;
  if (arguments.wide_stores && place.n + 4 <= arguments.outputs)
    return store_four(epilogue.y, at, epilogue.y_dtype, values);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (place.n + i < arguments.outputs) store_value(epilogue.y, at + i, epilogue.y_dtype, values[i]);
}

// finish_outputs (below), specialised for arguments.plain.
__device__ inline void finish_plain(const TileArguments& arguments, const OutputPlace& place,
                                    const FourFloats& before, FourFloats& sums) {
  const ProductEpilogue& epilogue = arguments.epilogue;
  FourFloats bias = {}, scale = {1.0f, 1.0f, 1.0f, 1.0f};
  if (epilogue.bias) load_four(epilogue.bias + place.n, bias);
  if (epilogue.scale) load_four(epilogue.scale + place.n, scale);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    sums[i] = epilogue_value(sums[i], bias[i], scale[i], before[i], Activation::none);
  if (!arguments.snake_alpha) return;
  FourFloats alpha;
  load_four(arguments.snake_alpha + place.n, alpha);
#pragma unroll
  for (int i = 0; i < 4; ++i) sums[i] = near_snake(sums[i], alpha[i], snake_inverse(alpha[i]));
}

// sums -> stored values.
__device__ inline void finish_outputs(const TileArguments& arguments, const OutputPlace& place,
                                      const FourFloats& before, FourFloats& sums) {
  if (arguments.plain) return finish_plain(arguments, place, before, sums);
  const ProductEpilogue& epilogue = arguments.epilogue;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int output = min(place.n + i, arguments.outputs - 1);
    const float bias = epilogue.bias ? __ldg(epilogue.bias + output) : 0.0f;
    const float scale = epilogue.scale ? __ldg(epilogue.scale + output) : 1.0f;
    sums[i] = epilogue_value(sums[i], bias, scale, before[i], epilogue.activation);
    if (!arguments.snake_alpha) continue;
    const float alpha = __ldg(arguments.snake_alpha + output);
    sums[i] = near_snake(sums[i], alpha, snake_inverse(alpha));
  }
}

}  // namespace shoal::ops::cuda
