// The rows that a layer works on: utterances end to end, with gaps (ops/segments.h).
#pragma once

#include <array>
#include <string_view>

#include "base/function_ref.h"
#include "ops/context.h"
#include "ops/linear.h"
#include "ops/segments.h"
#include "ops/transfer.h"

namespace shoal::kokoro {

// A look inside, for tests: the output of a stage by its name in the reference, the rows of the utterances
// one after the other, without gaps.
using Tap = FunctionRef<void(std::string_view stage, TensorView rows)>;

// Called between two stages by the speaking thread: a pass takes seconds on a CPU. An exception ends the
// pass.
using BetweenStages = FunctionRef<void()>;

// Frames of silence before the first utterance and between two; one more after the last. At every rate they
// are at least as many rows as the widest convolution reaches to one side: 25 of 40, 240 (MODEL.md, A batch),
// 2 of 2 among tokens.
constexpr int32_t kGap = 2;

struct Rows {
  ops::Context* ctx = nullptr;
  const Tap* tap = nullptr;
  const BetweenStages* between = nullptr;
  ops::Segments segments;

  int64_t count() const { return segments.total_rows(); }
  Workspace& workspace() const { return *ctx->workspace; }
  // [rows, channels], uninitialised.
  TensorView alloc(int64_t channels, DType dtype = DType::f32) const {
    return workspace().alloc(dtype, {count(), channels});
  }
  // The input of a convolution.
  TensorView alloc_input(const ops::PackedMatrix& weight) const {
    return alloc(weight.depth, ops::product_input(*ctx, weight));
  }
  Rows at(int64_t rate, int64_t extra = 0) const {
    return {.ctx = ctx, .tap = tap, .between = between, .segments = segments.at(rate, extra)};
  }
  // Rows that a convolution writes: all but the last kGap frames.
  int64_t conv_count() const { return (segments.total - kGap) * segments.rate; }
  // Called with the output of a finished stage.
  void tell(std::string_view stage, TensorView x) const;
};

// y = conv(x), where every row of an utterance sees as many rows after itself as before: `reach` rows, at
// most kGap frames. x: f32 or alloc_input, [rows, depth], dense, in order (zeros in gaps); y: f32 [rows,
// outputs], may be strided; its gaps have undefined values.
void centred_conv1d(const Rows& rows, TensorView x, const ops::PackedMatrix& weight, int64_t dilation,
                    TensorView y, const ops::Epilogue& epilogue = {});

// y[i] = sum over j of w[j] . x[i * stride + j - before]: fewer rows than x.   rows: those of y; x: f32
// [rows * stride, channels], dense, in order; weight: pack_strided_conv1d; y: f32 [rows, outputs], may be
// strided.
void strided_conv1d(const Rows& rows, TensorView x, const ops::PackedMatrix& weight, int64_t stride,
                    int64_t before, TensorView y);

// y[o] = sum over i of x[i] . w[o - stride * i + before] + bias: more rows than x.   rows: those of x, which
// is dense and in order; weight: pack_transposed_conv1d.   -> f32 [rows * stride, channels] in the enclosing
// scope.
TensorView transposed_conv1d(const Rows& rows, TensorView x, const ops::PackedMatrix& weight, int64_t stride,
                             int64_t before);

}  // namespace shoal::kokoro
