// Products of f32 on tensor cores, which take numbers of 11 bits (TF32): each number is the sum of two such,
// and of the four products of two numbers the three that matter are added. What is left out is about 2^-22 of
// a product.
//
// The order is that of matrix_layout.cuh, eight inputs at a time. Tensor cores cut off what they cannot keep
// instead of rounding it, so they add up no more than these eight; the ordinary units add that to the sum,
// which is then nearer to the exact one than a chain of fused multiply-adds (docs/perf/notebook-kokoro.md).
// All kernels multiply by the same instruction, with x as its rows: a row's bits are the same in all of them.
#pragma once

#include <cstdint>

namespace shoal::ops::cuda {

// high + low is v to within 2^-23 of it, and for |v| below 2^-114 to within 2^-137. NaN stays NaN, and from
// 2^114 on numbers become it.
struct Tf32Parts {
  uint32_t high, low;

  Tf32Parts() = default;
  __device__ explicit Tf32Parts(float v) {
    // Veltkamp's splitting, for 11 of 24 bits: faster than the instruction that rounds to TF32.
    const float wide = __fmul_rn(v, 8193.0f);
    const float rounded = __fsub_rn(wide, __fsub_rn(wide, v));
    high = __float_as_uint(rounded);
    low = (__float_as_uint(__fsub_rn(v, rounded)) + 0x1000) & 0xffffe000;  // of NaN anything: high is NaN
  }
};

// sums += a b, 16 rows by 8 columns over 8 inputs. Lane 4 g + q has of a rows g and g + 8 at input q, then at
// q + 4; of b column g at inputs q and q + 4; of sums columns 2 q and 2 q + 1 of row g, then of row g + 8.
__device__ inline void multiply_tf32(float (&sums)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                     uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// sums += rows columns over 8 inputs, by tiles of multiply_tf32. The multiplications of a tile wait for each
// other, those of different tiles do not.
template <int kRowTiles, int kColumnTiles>
__device__ inline void add_products(float (&sums)[kRowTiles][kColumnTiles][4],
                                    const Tf32Parts (&rows)[kRowTiles][4],
                                    const Tf32Parts (&columns)[kColumnTiles][2]) {
  float products[kRowTiles][kColumnTiles][4] = {};
  const auto multiply = [&](auto of_row, auto of_column) {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r)
#pragma unroll
      for (int c = 0; c < kColumnTiles; ++c)
        multiply_tf32(products[r][c], rows[r][0].*of_row, rows[r][1].*of_row, rows[r][2].*of_row,
                      rows[r][3].*of_row, columns[c][0].*of_column, columns[c][1].*of_column);
  };
  multiply(&Tf32Parts::low, &Tf32Parts::high);
  multiply(&Tf32Parts::high, &Tf32Parts::low);
  multiply(&Tf32Parts::high, &Tf32Parts::high);
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r)
#pragma unroll
    for (int c = 0; c < kColumnTiles; ++c)
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[r][c][i] = __fadd_rn(sums[r][c][i], products[r][c][i]);
}

// A warp's sums: 32 rows by 32 columns.
struct Tf32Sums {
  static constexpr int kSide = 32;
  float sum[2][4][4] = {};  // [16 rows][8 columns][of a lane]

  // += x weight over kInputs inputs in shared memory. Without bank conflicts if kXPitch is 4 more than a
  // multiple of 8, and kWeightPitch 8 more than a multiple of 32.   x: [kSide, kXPitch]; weight: [kInputs,
  // kWeightPitch]; kUnrolled: steps of the loop over them that are unrolled
  template <int kInputs, int kXPitch, int kWeightPitch, int kUnrolled>
  __device__ void add(const float* x, const float* weight) {
    const int g = static_cast<int>(threadIdx.x) % 32 / 4, q = static_cast<int>(threadIdx.x) % 4;
    x += g * kXPitch + q, weight += q * kWeightPitch + g;
#pragma unroll kUnrolled
    for (int k = 0; k < kInputs; k += 8) {
      Tf32Parts rows[2][4], columns[4][2];
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int i = 0; i < 4; ++i) rows[r][i] = Tf32Parts(x[(16 * r + i % 2 * 8) * kXPitch + k + i / 2 * 4]);
#pragma unroll
      for (int c = 0; c < 4; ++c)
#pragma unroll
        for (int i = 0; i < 2; ++i) columns[c][i] = Tf32Parts(weight[(k + 4 * i) * kWeightPitch + 8 * c]);
      add_products(sum, rows, columns);
    }
  }

  __device__ void add(const Tf32Sums& other) {
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int c = 0; c < 4; ++c)
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[r][c][i] = __fadd_rn(sum[r][c][i], other.sum[r][c][i]);
  }

  // what(row, column, sum of it, of the next column) of what the lane has.
  template <typename What>
  __device__ void each_pair(const What& what) const {
    const int g = static_cast<int>(threadIdx.x) % 32 / 4, q = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int r = 0; r < 4; ++r)
#pragma unroll
      for (int c = 0; c < 4; ++c)
        what(8 * r + g, 8 * c + 2 * q, sum[r / 2][c][r % 2 * 2], sum[r / 2][c][r % 2 * 2 + 1]);
  }
};

}  // namespace shoal::ops::cuda
