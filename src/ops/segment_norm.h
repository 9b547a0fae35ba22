// Ops along time on each utterance of a batch by itself: instance norm with a style, activations that leave
// gaps empty. All rows are f32 or, where stated, rounded to the dtype that the next product reads
// (product_input, linear.h).
#pragma once

#include <span>

#include "ops/context.h"
#include "ops/segments.h"

namespace shoal::ops {

// The activation after the norm: none, leaky_relu(slope), or snake: z + sin^2(alpha z) / alpha
// (kokoro/MODEL.md, Blocks).
struct SegmentActivation {
  float slope = 1;              // of negative values; 1: none
  TensorView snake_alpha = {};  // f32 [channels], not 0; empty: no snake. Not together with a slope.
};

// AdaIN (kokoro/MODEL.md, Blocks): y = act((1 + scale) (x - mean) / sqrt(var + eps) + shift), with the mean
// and biased variance of each channel over the rows of the segment; style has a row [scales | shifts] for
// each segment. x: f32 [total_rows, channels] (rows may be strided), its gaps are never read; style: f32
// [segments, 2 * channels] (rows may be strided); y: f32, bf16 or (GPU) f16 [total_rows, channels], dense,
// may be x; its gaps become zeros. Statistics in f32 or better; the order of summation depends only on the
// segment's rows: a segment's values are the same in every batch, bit for bit.
void adain(Context& ctx, TensorView x, const Segments& segments, TensorView style, float eps,
           const SegmentActivation& activation, TensorView y);

// y = leaky_relu(factor * (x_0 + x_1 + ...)) in the segments, zeros in the gaps.   x_i: f32 [total_rows,
// channels], at most kMostSegmentTerms, rows may be strided, summed in that order; y: f32, bf16 or (GPU) f16,
// rows may be strided, may be one of x.
constexpr size_t kMostSegmentTerms = 3;
void segment_sum(Context& ctx, std::span<const TensorView> x, const Segments& segments, float factor,
                 float slope, TensorView y);

// x[begin] = x[begin + 2] of every segment: reflects a signal that starts at row 1 into row 0. x: f32
// [total_rows, channels], rows may be strided; segments of at least 3 rows.
void mirror_first_rows(Context& ctx, const Segments& segments, TensorView x);

// A transposed convolution per channel, 3 taps, stride 2 (kokoro/MODEL.md, Blocks), of every segment by
// itself: y[2i] = w[1] x[i] + b, y[2i + 1] = w[2] x[i] + w[0] x[i + 1] + b, and zeros in the gaps of y.
// segments: those of x. x: f32 [rows, channels] (rows may be strided); beyond the last row of a segment it
// counts as zero, and gaps are never read; weight: f32 [3, channels]; bias: f32 [channels]; y: f32 [2 * rows,
// channels] (rows may be strided), not x.
void double_rows(Context& ctx, TensorView x, const Segments& segments, TensorView weight, TensorView bias,
                 TensorView y);

}  // namespace shoal::ops
