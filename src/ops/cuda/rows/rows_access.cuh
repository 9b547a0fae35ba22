// Pieces of rows on their way to and from registers: 16 bytes at a time where rows are aligned to them.
#pragma once

#include <cstdint>

#include "ops/cuda/rows/narrowed.cuh"
#include "ops/cuda/rows/row_norm.cuh"
#include "tensor/tensor.h"

namespace shoal::ops::cuda {

// Whether every row of f32 values starts at a multiple of 16 bytes and consists of whole vectors of four.
inline bool has_vector_rows(const float* rows, int64_t stride, int64_t dim) {
  return reinterpret_cast<uintptr_t>(rows) % 16 == 0 && stride % 4 == 0 && dim % 4 == 0;
}
inline bool has_vector_rows(TensorView matrix) {
  return has_vector_rows(matrix.as<float>(), matrix.stride(0), matrix.dim(1));
}

// Elements k .. k + 3 of a row, as far as it goes.
__device__ inline void store_four(float* row, int k, int dim, bool vectors, const float4& v) {
  if (vectors) {
    *reinterpret_cast<float4*>(row + k) = v;
    return;
  }
  row[k] = v.x;
  if (k + 1 < dim) row[k + 1] = v.y;
  if (k + 2 < dim) row[k + 2] = v.z;
  if (k + 3 < dim) row[k + 3] = v.w;
}

// Eight consecutive elements in f32.
struct Eight {
  float value[8];

  __device__ void add(const Eight& other) {
#pragma unroll
    for (int i = 0; i < 8; ++i) value[i] = __fadd_rn(value[i], other.value[i]);
  }
  __device__ void divide(float divisor) {
#pragma unroll
    for (int i = 0; i < 8; ++i) value[i] = __fdiv_rn(value[i], divisor);
  }
};

// The same as they stand in memory, which takes fewer registers while they are on their way.
template <typename T>
struct alignas(16) StoredEight {
  T value[8];

  __device__ Eight widen() const {
    Eight eight;
#pragma unroll
    for (int i = 0; i < 8; ++i) eight.value[i] = widened(value[i]);
    return eight;
  }
};

// Elements k .. k + 7; zeros beyond the end.  kVectors: all eight are there, and aligned to 16 bytes.
template <bool kVectors, typename T>
__device__ StoredEight<T> load_eight(const T* row, int k, int dim) {
  StoredEight<T> eight;
  if constexpr (kVectors) {
    constexpr int kVectorsOfEight = 8 * sizeof(T) / 16;
#pragma unroll
    for (int i = 0; i < kVectorsOfEight; ++i)
      reinterpret_cast<uint4*>(&eight)[i] = reinterpret_cast<const uint4*>(row + k)[i];
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) eight.value[i] = k + i < dim ? row[k + i] : T(0.0f);
  }
  return eight;
}

__device__ inline void store_eight(float* row, int k, int dim, const Eight& eight) {
  const float* const v = eight.value;
  if (k + 8 <= dim && reinterpret_cast<uintptr_t>(row + k) % 16 == 0) {
    *reinterpret_cast<float4*>(row + k) = {v[0], v[1], v[2], v[3]};
    *reinterpret_cast<float4*>(row + k + 4) = {v[4], v[5], v[6], v[7]};
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (k + i < dim) row[k + i] = v[i];
  }
}

}  // namespace shoal::ops::cuda
