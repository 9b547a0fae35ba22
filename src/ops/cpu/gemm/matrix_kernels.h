// The innermost matrix loops, one table per instruction set.
//
// Included by files compiled for wider instruction sets than the rest of the program: plain data only, no
// inline functions, no standard library.
#pragma once

#include <stdint.h>

namespace shoal::ops::cpu {

// A few rows times a few panels over the whole depth.
struct ProductBlock {
  // Element (row, tap, k) of the input is at row * row_stride + tap * tap_stride + k; float, or bf16 where
  // the table says so. For a convolution the rows overlap: tap_stride is dilation rows.
  const void* input;
  int64_t row_stride, tap_stride;  // elements
  const char* weights;             // the first panel (matrix_layout.h)
  int64_t panel_stride;            // bytes
  int64_t taps, depth;             // depth padded
  int rows, panels;
  float* sums;  // [rows][panels * 16], 64-byte aligned, room for kMostSums
  // Of an 8-bit product, for each row and group of 128 inputs, at row * scale_stride + group: the scale, and
  // 128 times the sum of the inputs, which weights stored as w + 128 add to the product.
  const float* input_scales;
  const int32_t* input_offsets;
  int64_t scale_stride;
  // Of a 4-bit product: inputs of a group of weights, a divisor of 128; and for each row and such group, at
  // row * sum_stride + group, the sum of the inputs times their scale, which counts the minimum of the
  // weights.
  int64_t group;
  const float* input_sums;
  int64_t sum_stride;
};

constexpr int kMostSums = 1024;
constexpr int kMostPanels = 4;         // of one block
constexpr int64_t kGroup = 128;        // inputs of a product of integers that are rounded with one scale
constexpr int64_t kNibbleHeader = 64;  // bytes before the integers of a group of 4-bit weights of a panel

// Order of summation, the same for every row, however many are computed together:
//   f32:  k even and k odd are two chains of fused multiply-adds over taps and depth; the result is even +
//   odd. bf16: per 32 k, two such chains from zero; block = even + odd; the result is the sum of the blocks
//   in order.
//         This is Intel's definition of TDPBF16PS, so AMX gives the same bits (but for denormal intermediate
//         results, which it flushes to zero).
//         avx512_bf16: what VDPBF16PS does to each pair of k, in order.
//   i8:   per group of 128 k the exact integer; the sum is a chain of fused multiply-adds, over the groups,
//   of
//         that integer and the row's scale of the group. The same bits on every instruction set.
//   u4:   per group of weights the exact integer; two fused multiply-adds a group, in order: that integer and
//         (weight scale * row's scale), then minimum and row's sum. The same bits on every instruction set.
struct ProductKernel {
  int most_rows;  // of one block
  int row_step;   // multiples of it waste no blocks
  // Panels of a block of this many rows: as many as the registers allow, at most 4.
  int (*panels_for)(int rows);
  void (*multiply)(const ProductBlock&);  // rows <= most_rows, panels <= max(2, panels_for(rows))
};

struct MatrixKernels {
  ProductKernel f32, bf16, i8, u4;
  bool reads_bf16;  // bf16 products take their input as bf16; otherwise as float already rounded to bf16
  // Called by each thread before and after its multiply calls; null when there is nothing to set up.
  void (*enter)();
  void (*leave)();
};

// Shared by the tables of the wider sets.
int avx512_panels_for(int rows);
void avx512_multiply_f32(const ProductBlock& block);
void avx512_multiply_bf16(const ProductBlock& block);
constexpr int kMostIntegerRows = 4;
int one_panel_for(int rows);
void avx2_multiply_i8(const ProductBlock& block);
constexpr int kMostVnniRows = 12;  // of a block of 8- or 4-bit weights, as many as registers hold
int vnni_panels_for(int rows);
void vnni_multiply_i8(const ProductBlock& block);
void avx2_multiply_u4(const ProductBlock& block);
int nibble_panels_for(int rows);
void vnni_multiply_u4(const ProductBlock& block);

extern const MatrixKernels kPortableMatrixKernels;
extern const MatrixKernels kAvx2MatrixKernels;
extern const MatrixKernels kAvx512MatrixKernels;
extern const MatrixKernels kAvx512Bf16MatrixKernels;
extern const MatrixKernels kAmxMatrixKernels;

}  // namespace shoal::ops::cpu
