#include "models/kokoro/rows.h"

#include <cstring>

#include "ops/conv1d.h"
#include "ops/segment_norm.h"

namespace shoal::kokoro {
void Rows::tell(std::string_view stage, TensorView x) const {
  if (between) (*between)();
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
  // The rows at both ends that this leaves out are gaps.
  const int64_t reach = (weight.taps - 1) / 2 * dilation;
  CHECK(reach <= kGap * rows.segments.rate, "centred_conv1d: ", reach, " rows of reach, gaps of ",
        kGap * rows.segments.rate);
  const int64_t count = rows.conv_count();
  ops::valid_conv1d(*rows.ctx, x.slice(0, count + reach), weight, dilation, y.slice(reach, count), epilogue);
}

void strided_conv1d(const Rows& rows, TensorView x, const ops::PackedMatrix& weight, int64_t stride,
                    int64_t before, TensorView y) {
  // With stride 1 over rows of `stride` inputs, tap 0 is the previous row: `stride` inputs, of which `before`
  // are needed. Row 0 is in a gap.
  const int64_t count = rows.conv_count(), skipped = stride - before;
  CHECK(weight.taps == 2 && 0 <= skipped && skipped <= kGap * rows.segments.rate * stride,
        "strided_conv1d: ", weight.taps, " taps, ", before, " before");
  const TensorView grouped = x.slice(skipped, skipped + count * stride).reshape({count, stride * x.dim(1)});
  ops::valid_conv1d(*rows.ctx, grouped, weight, 1, y.slice(1, count));
}

TensorView transposed_conv1d(const Rows& rows, TensorView x, const ops::PackedMatrix& weight, int64_t stride,
                             int64_t before) {
  const int64_t channels = weight.outputs / stride, count = rows.conv_count();
  const TensorView y = rows.workspace().alloc(DType::f32, {rows.count() * stride + before, channels});
  const int64_t first = weight.taps - 1;  // earlier rows are in a gap
  CHECK(first <= kGap * rows.segments.rate, "transposed_conv1d: ", weight.taps, " taps");
  const TensorView grouped = y.slice(0, count * stride).reshape({count, stride * channels});
  ops::valid_conv1d(*rows.ctx, x.slice(0, count), weight, 1, grouped.slice(first, count));
  return y.slice(before, before + rows.count() * stride);
}

}  // namespace shoal::kokoro
