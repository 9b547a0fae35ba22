#include "models/kokoro/rows.h"

#include <cstring>

#include "ops/segment_norm.h"

namespace shoal::kokoro {
namespace {

// All of a buffer but its last gap is one signal, which begins after silence.
void whole_conv1d(const Rows& rows, TensorView x, const ops::PackedMatrix& weight, int64_t dilation,
                  TensorView y, const ops::Epilogue& epilogue) {
  const std::array<int32_t, 2> offsets = {0, static_cast<int32_t>(x.dim(0))};
  ops::ConvRows conv_rows{.rows = {offsets}, .offsets = rows.conv_offsets, .rate = rows.segments.rate};
  ops::causal_conv1d(*rows.ctx, {.x = x, .rows = conv_rows}, weight, dilation, y, epilogue);
}

}  // namespace

void Rows::tell(std::string_view stage, TensorView x) const {
  if (!tap) return;
  const Workspace::Scope scope(*ctx->workspace);
  const TensorView dense = alloc(x.dim(1));
  ops::segment_sum(*ctx, std::array{x}, segments, 1, 1, dense);
  const Tensor all = ops::to_host(*ctx, dense);
  int64_t count = 0;
  for (int64_t s = 0; s < segments.count(); ++s) count += segments.rows(s);
  const Tensor joined(DType::f32, {count, x.dim(1)});
  float* to = joined.as<float>();
  for (int64_t s = 0; s < segments.count(); ++s) {
    const int64_t floats = segments.rows(s) * x.dim(1);
    std::memcpy(to, all.view().row<float>(segments.begin(s)), static_cast<size_t>(floats) * sizeof(float));
    to += floats;
  }
  (*tap)(stage, joined);
}

void centred_conv1d(const Rows& rows, TensorView x, const ops::PackedMatrix& weight, int64_t dilation,
                    TensorView y, const ops::Epilogue& epilogue) {
  // A causal convolution of the input `reach` rows earlier. The rows that this leaves out are gaps.
  const int64_t reach = (weight.taps - 1) / 2 * dilation;
  CHECK(reach <= kGap * rows.segments.rate, "centred_conv1d: ", reach, " rows of reach, gaps of ",
        kGap * rows.segments.rate);
  const int64_t count = rows.conv_count();
  whole_conv1d(rows, x.slice(reach, reach + count), weight, dilation, y.slice(0, count), epilogue);
}

void strided_conv1d(const Rows& rows, TensorView x, const ops::PackedMatrix& weight, int64_t stride,
                    int64_t before, TensorView y) {
  // With stride 1 over rows of `stride` inputs, tap 0 is the row before: `stride` inputs, of which `before`
  // are wanted.
  const int64_t count = rows.conv_count(), skipped = stride - before;
  CHECK(weight.taps == 2 && 0 <= skipped && skipped <= kGap * rows.segments.rate * stride,
        "strided_conv1d: ", weight.taps, " taps, ", before, " before");
  const TensorView grouped = x.slice(skipped, skipped + count * stride).reshape({count, stride * x.dim(1)});
  whole_conv1d(rows, grouped, weight, 1, y.slice(0, count), {});
}

TensorView transposed_conv1d(const Rows& rows, TensorView x, const ops::PackedMatrix& weight, int64_t stride,
                             int64_t before) {
  const int64_t channels = weight.outputs / stride, count = rows.conv_count();
  const TensorView y = rows.workspace().alloc(DType::f32, {rows.count() * stride + before, channels});
  whole_conv1d(rows, x.slice(0, count), weight, 1,
               y.slice(0, count * stride).reshape({count, stride * channels}), {});
  return y.slice(before, before + rows.count() * stride);
}

}  // namespace shoal::kokoro
