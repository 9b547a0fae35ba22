#include "ops/segment_norm.h"

#include <cmath>

#include "ops/op_testing.h"
#include "ops/segment_norm_testing.h"

namespace shoal::ops {
namespace {

using segment_testing::After;
using segment_testing::Batch;
using segment_testing::crowd;
using segment_testing::expect_empty_gaps;
using segment_testing::expect_normed;
using segment_testing::Floats;
using segment_testing::kAlone;
using segment_testing::kAtARate;
using segment_testing::kEps;
using segment_testing::kMixed;
using segment_testing::random_alpha;
using segment_testing::random_rows;
using segment_testing::random_style;
using segment_testing::step_of;
using segment_testing::Style;

// Rows of `width` with `gap` NaNs behind each.
Floats widened(const Floats& rows, int64_t width, int64_t gap) {
  Floats wide;
  for (auto row = rows.begin(); row != rows.end(); row += width) {
    wide.insert(wide.end(), row, row + width);
    wide.insert(wide.end(), static_cast<size_t>(gap), NAN);
  }
  return wide;
}

class SegmentNorm : public OpTest {
 protected:
  // y of x, with `gap` floats behind each row of x and of the style.
  Floats run(const Floats& x, const Segments& segments, const Style& style, After after = After::nothing,
             int64_t gap = 0, DType dtype = DType::f32) {
    poison(1 << 18);
    const int64_t rows = segments.total_rows(), width = static_cast<int64_t>(x.size()) / rows;
    const Tensor in = put(widened(x, width, gap), {rows, width + gap});
    const Tensor styles = put(widened(style.rows, 2 * width, gap), {segments.count(), 2 * width + gap});
    const Tensor y = garbage({rows, width}, dtype);
    adain(ctx(), in.view().columns(0, width), placed(segments), styles.view().columns(0, 2 * width), kEps,
          activation(after, width), y);
    return get(y);
  }
  SegmentActivation activation(After after, int64_t width) {
    if (after == After::leaky) return {.slope = 0.2f};
    if (after == After::nothing) return {};
    alpha_ = random_alpha(width);
    on_device_alpha_ = put(alpha_, {width});
    return {.snake_alpha = on_device_alpha_};
  }

  Floats alpha_;

 private:
  Tensor on_device_alpha_;
};

TEST_P(SegmentNorm, AdainMatchesTheOracleAndZeroesTheGaps) {
  for (const Batch& batch : {kAlone, kMixed, kAtARate, crowd()})
    for (const int64_t width : {1, 15, 64, 100, 130, 256}) {
      const Segments segments = batch.segments();
      if (!on_gpu() && segments.total_rows() * width > 500'000) continue;
      const Floats x = random_rows(segments, width, 5, 3.0f);
      const Style style = random_style(segments.count(), width);
      for (const After after : {After::nothing, After::leaky, After::snake}) {
        SCOPED_TRACE(testing::Message() << segments.count() << " segments, " << width << " channels, "
                                        << static_cast<int>(after));
        const Floats y = run(x, segments, style, after);
        for (int64_t s = 0; s < segments.count(); s += step_of(segments, 50)) {
          const auto own = [&](const Floats& values) {
            return Floats(values.begin() + segments.begin(s) * width,
                          values.begin() + (segments.begin(s) + segments.rows(s)) * width);
          };
          expect_normed(own(y), wide(own(x)), style.scales(s, width), style.shifts(s, width), after, alpha_);
        }
        expect_empty_gaps(y, width, segments);
      }
    }
}

// 25 s at the last rate, and a mean that a sum in one chain would lose.
TEST_P(SegmentNorm, StatisticsOfLongUtterancesStayExact) {
  const Batch batch{{0}, {120'001}, 120'001};
  for (const int64_t width : {3, 4}) {
    const Floats x = random_rows(batch.segments(), width, 6, 100.0f);
    const Style style = random_style(1, width);
    expect_normed(run(x, batch.segments(), style), wide(x), style.scales(0, width), style.shifts(0, width));
  }
}

TEST_P(SegmentNorm, ASegmentIsTheSameAloneAndInEveryBatch) {
  for (const Batch& batch : {kMixed, crowd()})
    for (const int64_t width : {70, 132}) {
      const Segments segments = batch.segments();
      const Floats x = random_rows(segments, width, 7);
      const Style style = random_style(segments.count(), width);
      const Floats y = run(x, segments, style, After::snake);
      for (int64_t s = 0; s < segments.count(); s += step_of(segments, 75)) {
        const int64_t rows = segments.rows(s), first = segments.begin(s) * width;
        const Batch alone{{0}, {static_cast<int32_t>(rows)}, rows};
        const Style own{{style.rows.begin() + s * 2 * width, style.rows.begin() + (s + 1) * 2 * width}};
        const Floats got =
            run({x.begin() + first, x.begin() + first + rows * width}, alone.segments(), own, After::snake);
        expect_same_bits(got, {y.begin() + first, y.begin() + first + rows * width});
      }
    }
}

TEST_P(SegmentNorm, AdainRunsInPlaceFromStridedRowsAndIntoSixteenBits) {
  for (const int64_t width : {37, 64}) {
    const Segments segments = kMixed.segments();
    const Floats x = random_rows(segments, width, 9);
    const Style style = random_style(segments.count(), width);
    const Floats want = run(x, segments, style, After::leaky);
    for (const int64_t gap : {1, 4, 5}) expect_same_bits(run(x, segments, style, After::leaky, gap), want);
    for (const DType dtype : narrow_types())
      expect_same_bits(run(x, segments, style, After::leaky, 0, dtype), rounded_to(want, dtype));
    const Tensor memory = put(x, {segments.total_rows(), width});
    adain(ctx(), memory, placed(segments), put(style.rows, {segments.count(), 2 * width}), kEps,
          {.slope = 0.2f}, memory);
    expect_same_bits(get(memory), want);
  }
}

TEST_P(SegmentNorm, ANaNStaysInItsChannelOfItsSegment) {
  constexpr int64_t kWidth = 20;
  const Segments segments = kMixed.segments();
  Floats x = random_rows(segments, kWidth, 10);
  const Style style = random_style(segments.count(), kWidth);
  Floats want = run(x, segments, style);
  x[static_cast<size_t>(segments.begin(2) * kWidth + 7)] = NAN;
  const Floats got = run(x, segments, style);
  for (int64_t row = 0; row < segments.rows(2); ++row) {
    const auto at = static_cast<size_t>((segments.begin(2) + row) * kWidth + 7);
    EXPECT_TRUE(std::isnan(got[at]));
    want[at] = got[at];
  }
  expect_same_bits(got, want);
}

TEST_P(SegmentNorm, AConstantChannelBecomesItsShift) {
  for (const int32_t rows : {100, 101}) {
    const Batch batch{{0}, {rows}, rows};
    const Style style = random_style(1, 17);
    const Floats y = run(Floats(static_cast<size_t>(rows) * 17, 2.5f), batch.segments(), style);
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], style.rows[17 + i % 17]);
  }
}

TEST_P(SegmentNorm, TheSteadyStateAllocatesNothing) {
  const Segments segments = kMixed.segments();
  const Floats x = random_rows(segments, 40, 60);
  const Style style = random_style(segments.count(), 40);
  run(x, segments, style, After::snake), run(x, segments, style, After::snake);
  const int64_t growths = ctx().workspace->growths();
  run(x, segments, style, After::snake);
  EXPECT_EQ(ctx().workspace->growths(), growths);
}

INSTANTIATE_TEST_SUITE_P(Machine, SegmentNorm, testing::ValuesIn(every_machine()), name_of_machine);

class SegmentNormOnCpus : public SegmentNorm {};

TEST_P(SegmentNormOnCpus, TeamsOfAnySizeAndThePortableKernelsGiveTheSameBits) {
  for (const int64_t width : {1, 30, 66, 128}) {
    const Segments segments = kMixed.segments();
    const Floats x = random_rows(segments, width, 8);
    const Style style = random_style(segments.count(), width);
    ThreadTeam* const own = ctx().team;
    for (const After after : {After::leaky, After::snake}) {
      const Floats two = run(x, segments, style, after);
      for (const int threads : {1, 5}) {
        ThreadTeam team(threads);
        ctx().team = &team;
        expect_same_bits(run(x, segments, style, after), two);
      }
      ctx().team = own;
      set_cpu_isa(CpuIsa::portable);
      expect_same_bits(run(x, segments, style, after), two);
      set_cpu_isa(*GetParam().isa);
    }
  }
}

TEST_P(SegmentNormOnCpus, WithoutSegmentsEveryRowIsAGap) {
  const Segments none{.total = 4};
  const Tensor x = garbage({4, 3}), y = put(Floats(12, 77.0f), {4, 3}),
               other = put(Floats(12, 77.0f), {4, 3});
  const Floats nothing = {0};
  adain(ctx(), x, none, TensorView::of(nothing.data(), DType::f32, {0, 6}), kEps, {}, y);
  expect_same_bits(get(y), Floats(12));
  const TensorView term = x;
  segment_sum(ctx(), {&term, 1}, none, 1, 1, other);
  expect_same_bits(get(other), Floats(12));
}

INSTANTIATE_TEST_SUITE_P(Cpu, SegmentNormOnCpus, testing::ValuesIn(every_cpu()), name_of_machine);

}  // namespace
}  // namespace shoal::ops
