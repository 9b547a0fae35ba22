// A result of a product whose thread has time before the sums are there: whatever does not depend on them is
// computed and asked for beforehand. (Code that runs once costs about six cycles an instruction, an H200: it
// is not in the nearest cache.)
#pragma once

#include "ops/cuda/gemm/operands/product_epilogue.cuh"

namespace shoal::ops::cuda {

class AwaitedResult {
 public:
  AwaitedResult() = default;
  // Of row `row` and output n, or hidden unit n of a paired matrix. exists: otherwise nothing is done. (Where
  // it goes takes 32 bits, as skinny_arguments() checks.)
  __device__ AwaitedResult(const ProductEpilogue& epilogue, int row, int n, bool exists)
      : at_(exists ? row * static_cast<int>(epilogue.y_stride) + n : -1) {
    if (!exists) return;
    if (epilogue.bias) bias_ = __ldg(epilogue.bias + n);
    if (epilogue.scale) scale_ = __ldg(epilogue.scale + n);
  }
  __device__ bool exists() const { return at_ >= 0; }

  // Asks for what y holds, to which the result is added.
  __device__ void ask(const ProductEpilogue& epilogue) {
    if (exists() && epilogue.accumulate) before_ = static_cast<const float*>(epilogue.y)[at_];
  }
  // Of a result that exists.
  __device__ void store(const ProductEpilogue& epilogue, float sum) const {
    store_value(epilogue.y, at_, epilogue.y_dtype,
                epilogue_value(sum, bias_, scale_, before_, epilogue.activation));
  }
  __device__ void store_pair(const ProductEpilogue& epilogue, float gate, float up) const {
    store_value(epilogue.y, at_, epilogue.y_dtype, swiglu_value(gate, up));
  }

 private:
  int at_ = -1;  // in y
  float bias_ = 0.0f, scale_ = 1.0f, before_ = 0.0f;
};

// The sums of so many segments, which lie `stride` bytes apart, added in order; of kSegments all are
// asked for before the first is added.
__device__ inline float sum_of_segments(const char* from, int stride, int segments) {
  float sum = 0.0f;
  if (segments != kSegments) {
#pragma unroll 1
    for (int i = 0; i < segments; ++i)
      sum = __fadd_rn(sum, *reinterpret_cast<const float*>(from + i * stride));
    return sum;
  }
  float of_segment[kSegments];
#pragma unroll
  for (float& one : of_segment) one = *reinterpret_cast<const float*>(from), from += stride;
#pragma unroll
  for (const float one : of_segment) sum = __fadd_rn(sum, one);
  return sum;
}

}  // namespace shoal::ops::cuda
