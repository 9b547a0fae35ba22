// A part of a matrix to pack, in the memory of the device.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "ops/cuda/gemm/operands/products.h"
#include "ops/weight_source.h"

namespace shoal::ops::cuda {

// The positions of a part's elements in device memory (WeightSource), and their destination.
struct PackArguments {
  const void* source;
  WeightSource from;  // data is not read; start counts from `source`; scales and minima are in device memory
  MatrixShape shape;
  int64_t part, first_output;
  void* to;
};

// In elements.
__device__ inline int64_t source_index(const PackArguments& a, int64_t n, int64_t tap, int64_t k) {
  const WeightSource& s = a.from;
  return s.start + n / s.n_inner * s.n_outer_stride + n % s.n_inner * s.n_inner_stride + tap * s.tap_stride +
         k / s.k_inner * s.k_outer_stride + k % s.k_inner * s.k_inner_stride;
}

__device__ inline float source_value(const PackArguments& a, int64_t n, int64_t tap, int64_t k) {
  const WeightSource& s = a.from;
  const int64_t i = source_index(a, n, tap, k);
  if (s.dtype == DType::f32) return static_cast<const float*>(a.source)[i];
  if (s.dtype == DType::i8) return static_cast<const int8_t*>(a.source)[i];
  if (s.dtype == DType::bf16) return __bfloat162float(static_cast<const __nv_bfloat16*>(a.source)[i]);
  return __half2float(static_cast<const __half*>(a.source)[i]);
}

// The row of tiles of an output of the result.
__device__ inline int64_t tile_row_of(const PackArguments& a, int64_t output) {
  return a.shape.paired ? output / kTileOutputs * 2 + a.part : output / kTileOutputs;
}

// As 8-bit weights, for operands of bf16 or f16. scales: by row of tiles and output in it.
void pack_int8(Context& ctx, const PackArguments& arguments, DType operand, float* scales);
// As e4m3 weights, of stored ones; otherwise the same.
void pack_fp8(Context& ctx, const PackArguments& arguments, DType operand, float* scales);
// As 4-bit weights, of stored ones; one tap.
void pack_int4(Context& ctx, const PackArguments& arguments, const MatrixFormat& format);

}  // namespace shoal::ops::cuda
