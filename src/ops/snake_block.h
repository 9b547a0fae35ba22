// The residual blocks of a style-controlled vocoder (AdaINResBlock1, kokoro/MODEL.md, Blocks).
#pragma once

#include <span>

#include "ops/context.h"
#include "ops/packed_matrix.h"
#include "ops/segments.h"

namespace shoal::ops {

// x + conv2(snake(adain(conv1(snake(adain(x)))))): every convolution [channels, taps, channels] with an odd
// number of taps, centred: a row sees as many rows after itself as before.
struct SnakeUnit {
  struct Half {
    TensorView style;                    // f32 [segments, 2 * channels]: scales, shifts; rows may be strided
    TensorView alpha;                    // f32 [channels], not 0
    const PackedMatrix* conv = nullptr;  // pack_conv1d
    int64_t dilation = 1;
  } first, second;
};

// y = the units applied to x one after the other (at least one), every segment by itself (adain:
// segment_norm.h). x, y: f32 [total_rows, channels], dense, not overlapping, on a GPU aligned to 16 bytes.
// The gaps of x are never read; they are at least as wide as a convolution reaches to one side (if a GPU has
// its own kernels for the block, they may be narrower). The gaps of y have undefined values. A segment's rows
// are the same in every batch, bit for bit.
void snake_block(Context& ctx, TensorView x, const Segments& segments, std::span<const SnakeUnit> units,
                 float eps, TensorView y);

}  // namespace shoal::ops
