#include "ops/segment_norm.h"

#include "ops/cpu_backend.h"
#include "ops/cuda_backend.h"

namespace shoal::ops {
namespace {

void check_where(const char* op, const Context& ctx, const Segments& segments) {
  check_segments(op, segments);
  CHECK(on_cpu(ctx) || !segments.tables.empty(), op, ": segments without tables on the device");
}

void check_f32(const char* op, const char* name, TensorView view, const Shape& shape) {
  CHECK(view.dtype() == DType::f32 && view.shape() == shape, op, ": ", name, " is ", name_of(view.dtype()),
        " ", view.shape(), ", expected F32 ", shape);
}

// Rows of x: one for each of the buffer's, of at least one channel.
void check_rows(const char* op, TensorView x, const Segments& segments) {
  CHECK(x.rank() == 2 && x.dim(1) > 0, op, ": x is ", x.shape(), ", expected [rows, channels]");
  check_f32(op, "x", x, {segments.total_rows(), x.dim(1)});
}

// A CPU has no f16: none of its products reads them.
void check_result(const char* op, const Context& ctx, TensorView y, const Shape& shape) {
  const bool known =
      y.dtype() == DType::f32 || y.dtype() == DType::bf16 || (!on_cpu(ctx) && y.dtype() == DType::f16);
  CHECK(known && y.shape() == shape, op, ": y is ", name_of(y.dtype()), " ", y.shape(),
        ", expected F32 or BF16", on_cpu(ctx) ? " " : " or F16 ", shape);
}

}  // namespace

void adain(Context& ctx, TensorView x, const Segments& segments, TensorView style, float eps,
           const SegmentActivation& activation, TensorView y) {
  check_where("adain", ctx, segments);
  check_rows("adain", x, segments);
  const int64_t channels = x.dim(1);
  check_f32("adain", "style", style, {segments.count(), 2 * channels});
  check_result("adain", ctx, y, x.shape());
  CHECK(y.is_contiguous(), "adain: rows of y are ", y.stride(0), " apart, expected ", channels);
  CHECK(eps > 0, "adain: eps is ", eps, ", expected more than 0");
  if (!activation.snake_alpha.empty()) {
    check_f32("adain", "snake alpha", activation.snake_alpha, {channels});
    CHECK(activation.slope == 1, "adain: a snake and a slope of ", activation.slope,
          ", expected one of them");
  }
  if (x.dim(0) == 0) return;
  if (on_cpu(ctx)) return cpu::adain(ctx, x, segments, style, eps, activation, y);
  cuda::adain(ctx, x, segments, style, eps, activation, y);
}

void segment_sum(Context& ctx, std::span<const TensorView> x, const Segments& segments, float factor,
                 float slope, TensorView y) {
  check_where("segment_sum", ctx, segments);
  CHECK(!x.empty() && x.size() <= kMostSegmentTerms, "segment_sum: ", x.size(), " terms, expected 1 to ",
        kMostSegmentTerms);
  for (const TensorView& term : x) {
    check_rows("segment_sum", term, segments);
    check_f32("segment_sum", "x", term, x[0].shape());
  }
  check_result("segment_sum", ctx, y, x[0].shape());
  if (y.dim(0) == 0) return;
  if (on_cpu(ctx)) return cpu::segment_sum(ctx, x, segments, factor, slope, y);
  cuda::segment_sum(ctx, x, segments, factor, slope, y);
}

void mirror_first_rows(Context& ctx, const Segments& segments, TensorView x) {
  check_where("mirror_first_rows", ctx, segments);
  check_rows("mirror_first_rows", x, segments);
  for (int64_t s = 0; s < segments.count(); ++s)
    CHECK(segments.rows(s) >= 3, "mirror_first_rows: segment ", s, " of ", segments.rows(s), " rows");
  if (on_cpu(ctx)) return cpu::mirror_first_rows(segments, x);
  cuda::mirror_first_rows(ctx, segments, x);
}

void double_rows(Context& ctx, TensorView x, const Segments& segments, TensorView weight, TensorView bias,
                 TensorView y) {
  check_where("double_rows", ctx, segments);
  check_rows("double_rows", x, segments);
  const int64_t rows = x.dim(0), channels = x.dim(1);
  check_f32("double_rows", "weight", weight, {3, channels});
  CHECK(weight.is_contiguous(), "double_rows: rows of the weight are ", weight.stride(0), " apart");
  check_f32("double_rows", "bias", bias, {channels});
  check_f32("double_rows", "y", y, {2 * rows, channels});
  CHECK(y.is_sized_only() || y.data() != x.data(), "double_rows: y is x");
  if (rows == 0) return;
  if (on_cpu(ctx)) return cpu::double_rows(ctx, x, segments, weight, bias, y);
  cuda::double_rows(ctx, x, segments, weight, bias, y);
}

}  // namespace shoal::ops
