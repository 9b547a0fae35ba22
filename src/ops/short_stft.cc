#include "ops/short_stft.h"

#include "ops/cpu_backend.h"
#include "ops/cuda_backend.h"

namespace shoal::ops {
namespace {

void check_stft(const char* op, const ShortStft& stft, const Segments& segments) {
  check_segments(op, segments);
  CHECK(stft.points >= 2 && stft.points <= 64 && stft.points % 2 == 0 && stft.hop >= 1 &&
            stft.points % stft.hop == 0 && stft.points >= 2 * stft.hop,
        op, ": ", stft.points, " points with a hop of ", stft.hop);
  CHECK(segments.extra == 1, op, ": segments have ", segments.extra,
        " extra rows, expected 1 for the last frame");
  for (int64_t s = 0; s < segments.count(); ++s) {
    const int64_t samples = (segments.rows(s) - 1) * stft.hop;
    CHECK(samples >= stft.points / 2 + 1, op, ": segment ", s, " has ", samples, " samples, expected ",
          stft.points / 2 + 1, " or more to mirror");
  }
}

void check_dense(const char* op, const char* name, TensorView x, Shape shape) {
  CHECK(x.dtype() == DType::f32 && x.shape() == shape && x.is_contiguous(), op, ": ", name, " is ",
        name_of(x.dtype()), " ", x.shape(), ", expected dense F32 ", shape);
}

}  // namespace

void short_stft(Context& ctx, const ShortStft& stft, TensorView x, const Segments& segments, TensorView y) {
  check_stft("short_stft", stft, segments);
  check_dense("short_stft", "x", x, {segments.total_rows() * stft.hop});
  check_dense("short_stft", "y", y, {segments.total_rows(), 2 * stft.bins()});
  if (segments.total_rows() == 0) return;
  if (on_cpu(ctx)) return cpu::short_stft(ctx, stft, x, segments, y);
  cuda::short_stft(ctx, stft, x, segments, y);
}

void inverse_short_stft(Context& ctx, const ShortStft& stft, TensorView x, const Segments& segments,
                        TensorView y) {
  check_stft("inverse_short_stft", stft, segments);
  check_dense("inverse_short_stft", "x", x, {segments.total_rows(), 2 * stft.bins()});
  check_dense("inverse_short_stft", "y", y, {segments.total_rows() * stft.hop});
  if (segments.total_rows() == 0) return;
  if (on_cpu(ctx)) return cpu::inverse_short_stft(ctx, stft, x, segments, y);
  cuda::inverse_short_stft(ctx, stft, x, segments, y);
}

}  // namespace shoal::ops
