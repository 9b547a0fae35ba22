// The RMS norm of a row, by one warp or several, with one order of summation wherever it is done: in the
// rms_norm kernel, while a product stages its input, while an input is converted.
#pragma once

#include <cuda_runtime.h>

namespace shoal::ops::cuda {

// Inputs k .. k + 3 of a row; zeros beyond its end.  vectors: the row is 16-byte aligned and depth a multiple
// of 4.
__device__ inline float4 load_four(const float* row, int k, int depth, bool vectors) {
  if (k >= depth) return float4{};
  if (vectors) return *reinterpret_cast<const float4*>(row + k);
  return {row[k], k + 1 < depth ? row[k + 1] : 0.0f, k + 2 < depth ? row[k + 2] : 0.0f,
          k + 3 < depth ? row[k + 3] : 0.0f};
}

// The sum over the warp, in every lane.
__device__ inline float warp_sum(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    value = __fadd_rn(value, __shfl_xor_sync(~0u, value, distance));
  return value;
}

// Four inputs of a row, normed: times the factor that the row's measure gave, times the weights.
__device__ inline float4 normed_four(const float4& x, float factor, const float4& weight) {
  return {__fmul_rn(__fmul_rn(x.x, factor), weight.x), __fmul_rn(__fmul_rn(x.y, factor), weight.y),
          __fmul_rn(__fmul_rn(x.z, factor), weight.z), __fmul_rn(__fmul_rn(x.w, factor), weight.w)};
}

constexpr int kNormSums = 8;  // of squares, in each lane: as many warps may share a row

// The sum of the squares of four inputs, in one order.
__device__ inline float sum_of_squares(const float4& v) {
  return __fadd_rn(__fmaf_rn(v.y, v.y, __fmul_rn(v.x, v.x)), __fmaf_rn(v.w, v.w, __fmul_rn(v.z, v.z)));
}

// 1 / sqrt(mean(x^2) + eps), in every lane.  sum: of the lane's squares. (To an ulp or two: exact divisions
// stood longer between a row and its product than its sums.)
__device__ inline float norm_factor(float sum, int depth, float eps) {
  float inverse, factor;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(static_cast<float>(depth)));
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(factor) : "f"(__fmaf_rn(warp_sum(sum), inverse, eps)));
  return factor;
}

// y = x / sqrt(mean(x^2) + eps) * weight.  measure() by all lanes of a warp, then write(); what has been read
// stays in registers (of a row of more than kHeld * 128 inputs, the last piece). Order: lane l has kNormSums
// sums; number j takes the squares of inputs 128 i + 4 l .. + 3, i = j, j + 8, .. by rising i; then they are
// added, from 0 to 7, and the lanes'. kHeld changes no bits.
template <int kHeld>
class RowNormOf {
 public:
  // asked(): called once, when the first inputs have been asked for and have yet to come.
  template <typename Asked>
  __device__ void measure(const float* row, int depth, float eps, bool vectors, const Asked& asked) {
    float sums[kNormSums] = {};
    for (int begin = 0; begin < depth; begin += kPiece) {
      read(row, begin, depth, vectors);
      if (begin == 0) asked();
#pragma unroll
      for (int i = 0; i < kHeld; ++i)
        sums[i % kNormSums] = __fadd_rn(sums[i % kNormSums], sum_of_squares(held_[i]));
    }
    float sum = sums[0];
#pragma unroll
    for (int i = 1; i < kNormSums; ++i) sum = __fadd_rn(sum, sums[i]);
    factor_ = norm_factor(sum, depth, eps);
  }

  __device__ void measure(const float* row, int depth, float eps, bool vectors) {
    measure(row, depth, eps, vectors, [] {});
  }

  // 1 / sqrt(mean(x^2) + eps), in every lane.
  __device__ float factor() const { return factor_; }

  // weight(k) -> float4, store(k, float4): of inputs k .. k + 3, for every k < depth that is a multiple of 4;
  // values beyond depth are to be ignored. May follow other code, but the same arguments as measure's.
  template <typename Weight, typename Store>
  __device__ void write(const float* row, int depth, bool vectors, Weight weight, Store store) {
    const int last = (depth - 1) / kPiece * kPiece;
    for (int begin = last; begin >= 0; begin -= kPiece) {
      if (begin != last) read(row, begin, depth, vectors);
#pragma unroll
      for (int i = 0; i < kHeld; ++i) {
        const int k = begin + i * 128 + lane() * 4;
        if (k >= depth) continue;
        store(k, normed_four(held_[i], factor_, weight(k)));
      }
    }
  }

 private:
  static_assert(kHeld % kNormSums == 0);
  static __device__ int lane() { return static_cast<int>(threadIdx.x % 32); }
  static constexpr int kPiece = kHeld * 128;

  __device__ void read(const float* row, int begin, int depth, bool vectors) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) held_[i] = load_four(row, begin + i * 128 + lane() * 4, depth, vectors);
  }

  float4 held_[kHeld];
  float factor_;
};
using RowNorm = RowNormOf<8>;

}  // namespace shoal::ops::cuda
