#include "ops/segment_norm.h"

#include <cmath>

#include "ops/segment_norm_testing.h"

namespace shoal::ops {
namespace {

using segment_testing::After;
using segment_testing::Batch;
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
using segment_testing::rows_of;
using segment_testing::Style;

class SegmentNorm : public IsaTest {
 protected:
  Floats run(Floats x, const Segments& segments, const Style& style, After after = After::nothing) {
    const int64_t width = static_cast<int64_t>(x.size()) / segments.total_rows();
    Floats y(x.size(), 77.0f);
    const Shape shape{segments.total_rows(), width};
    adain(ctx_, view_of(x, shape), segments, style_view(style, segments), kEps, activation(after, width),
          view_of(y, shape));
    return y;
  }

  static TensorView style_view(const Style& style, const Segments& segments) {
    const int64_t width = static_cast<int64_t>(style.rows.size()) / segments.count();
    return TensorView::of(style.rows.data(), DType::f32, {segments.count(), width});
  }
  SegmentActivation activation(After after, int64_t width) {
    if (after == After::leaky) return {.slope = 0.2f};
    if (after == After::nothing) return {};
    alpha_ = random_alpha(width);
    return {.snake_alpha = view_of(alpha_, {width})};
  }

  Floats alpha_;
};

TEST_P(SegmentNorm, AdainMatchesTheOracleAndZeroesTheGaps) {
  for (const Batch& batch : {kAlone, kMixed, kAtARate})
    for (const int64_t width : {1, 15, 64, 100, 130})
      for (const After after : {After::nothing, After::leaky, After::snake}) {
        const Segments segments = batch.segments();
        SCOPED_TRACE(testing::Message() << segments.count() << " segments, " << width << " channels, "
                                        << static_cast<int>(after));
        const Floats x = random_rows(segments, width, 5, 3.0f);
        const Style style = random_style(segments.count(), width);
        const Floats y = run(x, segments, style, after);
        for (int64_t s = 0; s < segments.count(); ++s) {
          const auto own = [&](const Floats& values) {
            return Floats(values.begin() + segments.begin(s) * width,
                          values.begin() + (segments.begin(s) + segments.rows(s)) * width);
          };
          expect_normed(own(y), wide(own(x)), style.scales(s, width), style.shifts(s, width), after, alpha_);
        }
        expect_empty_gaps(y, width, segments);
      }
}

// 25 s at the last rate, and a mean that a sum in one chain would lose.
TEST_P(SegmentNorm, StatisticsOfLongUtterancesStayExact) {
  const Batch batch{{0}, {120'001}, 120'001};
  constexpr int64_t kWidth = 3;
  const Floats x = random_rows(batch.segments(), kWidth, 6, 100.0f);
  const Style style = random_style(1, kWidth);
  expect_normed(run(x, batch.segments(), style), wide(x), style.scales(0, kWidth), style.shifts(0, kWidth));
}

TEST_P(SegmentNorm, ASegmentIsTheSameAloneAndInEveryBatch) {
  constexpr int64_t kWidth = 70;
  const Segments segments = kMixed.segments();
  const Floats x = random_rows(segments, kWidth, 7);
  const Style style = random_style(segments.count(), kWidth);
  const Floats y = run(x, segments, style, After::snake);
  for (int64_t s = 0; s < segments.count(); ++s) {
    const int64_t rows = segments.rows(s), first = segments.begin(s) * kWidth;
    const Batch alone{{0}, {static_cast<int32_t>(rows)}, rows};
    const Style own{{style.rows.begin() + s * 2 * kWidth, style.rows.begin() + (s + 1) * 2 * kWidth}};
    const Floats got =
        run({x.begin() + first, x.begin() + first + rows * kWidth}, alone.segments(), own, After::snake);
    expect_same_bits(got, {y.begin() + first, y.begin() + first + rows * kWidth});
  }
}

TEST_P(SegmentNorm, TeamsOfAnySizeAndThePortableKernelsGiveTheSameBits) {
  for (const int64_t width : {1, 30, 66, 128}) {
    const Segments segments = kMixed.segments();
    const Floats x = random_rows(segments, width, 8);
    const Style style = random_style(segments.count(), width);
    for (const After after : {After::leaky, After::snake}) {
      const Floats two = run(x, segments, style, after);
      for (const int threads : {1, 5}) {
        ThreadTeam team(threads);
        ctx_.team = &team;
        expect_same_bits(run(x, segments, style, after), two);
      }
      ctx_.team = &team_;
      set_cpu_isa(CpuIsa::portable);
      expect_same_bits(run(x, segments, style, after), two);
      set_cpu_isa(GetParam());
    }
  }
}

TEST_P(SegmentNorm, AdainRunsInPlaceFromStridedRowsAndIntoBf16) {
  constexpr int64_t kWidth = 37;
  const Segments segments = kMixed.segments();
  const int64_t rows = segments.total_rows();
  Floats x = random_rows(segments, kWidth, 9);
  const Style style = random_style(segments.count(), kWidth);
  const Floats want = run(x, segments, style, After::leaky);

  Floats wide_x(static_cast<size_t>(rows * (kWidth + 5)), NAN), y(x.size());
  const TensorView strided = view_of(wide_x, {rows, kWidth + 5}).columns(2, 2 + kWidth);
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(&x[static_cast<size_t>(row * kWidth)], kWidth, strided.row<float>(row));
  Style wide_style{Floats(style.rows.size() + static_cast<size_t>(segments.count()), NAN)};
  for (int64_t s = 0; s < segments.count(); ++s)
    std::copy_n(style.rows.begin() + s * 2 * kWidth, 2 * kWidth,
                wide_style.rows.begin() + s * (2 * kWidth + 1));
  const TensorView strided_style = style_view(wide_style, segments).columns(0, 2 * kWidth);
  adain(ctx_, strided, segments, strided_style, kEps, {.slope = 0.2f}, view_of(y, {rows, kWidth}));
  expect_same_bits(y, want);

  const Tensor narrow(DType::bf16, {rows, kWidth});
  const TensorView in = view_of(x, {rows, kWidth});
  adain(ctx_, in, segments, style_view(style, segments), kEps, {.slope = 0.2f}, narrow);
  for (size_t i = 0; i < want.size(); ++i) ASSERT_EQ(narrow.as<Bf16>()[i], float_to_bf16(want[i])) << i;

  adain(ctx_, in, segments, style_view(style, segments), kEps, {.slope = 0.2f}, in);
  expect_same_bits(x, want);
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
  const Batch batch{{0}, {100}, 100};
  const Floats x(100 * 17, 2.5f);
  const Style style = random_style(1, 17);
  const Floats y = run(x, batch.segments(), style);
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], style.rows[17 + i % 17]);
}

TEST_P(SegmentNorm, SumsMatchTheOracle) {
  for (const Batch& batch : {kAlone, kMixed, kAtARate})
    for (const int64_t width : {1, 33, 128})
      for (const size_t count : {1u, 2u, 3u}) {
        const Segments segments = batch.segments();
        const int64_t rows = segments.total_rows();
        std::vector<Floats> memory;
        std::vector<TensorView> terms;
        for (size_t i = 0; i < count; ++i) {
          memory.push_back(random_rows(segments, width + 3, static_cast<unsigned>(30 + 10 * i)));
          terms.push_back(view_of(memory[i], {rows, width + 3}).columns(i, width + static_cast<int64_t>(i)));
        }
        const float factor = 1.0f / 3, slope = 0.1f;
        ref::Values want, bound;
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t c = 0; c < width; ++c) {
            double sum = 0, size = 0;
            for (const TensorView& term : terms)
              sum += term.row<float>(row)[c], size += std::abs(term.row<float>(row)[c]);
            const double y = ref::leaky_relu(factor * sum, slope);
            want.push_back(std::isnan(y) ? 0 : y);  // of a gap
            bound.push_back(std::isnan(y) ? 1e-45 : 4 * kUnit * factor * size + 1e-40);
          }
        // Into rows of their own, as bf16, and over the last term.
        Floats apart(static_cast<size_t>(rows * (width + 2)), 77.0f);
        const TensorView y = view_of(apart, {rows, width + 2}).columns(1, width + 1);
        segment_sum(ctx_, terms, segments, factor, slope, y);
        const Floats got = rows_of(y, 0, rows);
        expect_close(got, want, bound);
        expect_empty_gaps(got, width, segments);
        for (int64_t row = 0; row < rows; ++row) {
          ASSERT_EQ(apart[static_cast<size_t>(row * (width + 2))], 77.0f);
          ASSERT_EQ(apart[static_cast<size_t>((row + 1) * (width + 2) - 1)], 77.0f);
        }
        const Tensor narrow(DType::bf16, {rows, width});
        segment_sum(ctx_, terms, segments, factor, slope, narrow);
        for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(narrow.as<Bf16>()[i], float_to_bf16(got[i])) << i;
        segment_sum(ctx_, terms, segments, factor, slope, terms.back());
        expect_same_bits(rows_of(terms.back(), 0, rows), got);
      }
}

TEST_P(SegmentNorm, DoubledRowsAreATransposedConvolutionOfEachSegment) {
  for (const Batch& batch : {kAlone, kMixed, kAtARate})
    for (const int64_t width : {1, 16, 45}) {
      const Segments segments = batch.segments();
      const int64_t rows = segments.total_rows();
      Floats memory = random_rows(segments, width + 3, 50);
      const TensorView x = view_of(memory, {rows, width + 3}).columns(3, width + 3);
      Floats weight = random_values(3 * width, 51), bias = random_values(width, 52);
      Floats apart(static_cast<size_t>(2 * rows * (width + 1)), 77.0f);
      const TensorView y = view_of(apart, {2 * rows, width + 1}).columns(0, width);
      double_rows(ctx_, x, segments, view_of(weight, {3, width}), view_of(bias, {width}), y);
      for (int64_t s = 0; s < segments.count(); ++s) {
        const int64_t first = segments.begin(s), last = first + segments.rows(s);
        const ref::Values own = wide(rows_of(x, first, last));
        const ref::Values size =
            ref::double_rows(magnitudes(own), magnitudes(wide(weight)), magnitudes(wide(bias)));
        ref::Values bound;
        for (const double m : size) bound.push_back(2 * kUnit * m + 1e-40);  // two fused sums
        expect_close(rows_of(y, 2 * first, 2 * last), ref::double_rows(own, wide(weight), wide(bias)), bound);
      }
      expect_empty_gaps(rows_of(y, 0, 2 * rows), width, segments, 2);
      for (int64_t row = 0; row < 2 * rows; ++row)
        ASSERT_EQ(apart[static_cast<size_t>((row + 1) * (width + 1) - 1)], 77.0f);
      const Floats got = rows_of(y, 0, 2 * rows);
      set_cpu_isa(CpuIsa::portable);
      double_rows(ctx_, x, segments, view_of(weight, {3, width}), view_of(bias, {width}), y);
      expect_same_bits(rows_of(y, 0, 2 * rows), got);
      set_cpu_isa(GetParam());
    }
}

TEST_P(SegmentNorm, FirstRowsAreMirrorImages) {
  const Segments segments = kMixed.segments().at(3);
  const Floats before = random_rows(segments, 5, 61);
  Floats x = before;
  mirror_first_rows(ctx_, segments, view_of(x, {segments.total_rows(), 5}));
  Floats expected = before;
  for (int64_t s = 0; s < segments.count(); ++s) {
    for (int64_t c = 0; c < 5; ++c) {
      const auto first = static_cast<size_t>(segments.begin(s) * 5 + c);
      expected[first] = before[first + 10];
    }
  }
  expect_same_bits(x, expected);
}

TEST_P(SegmentNorm, TheSteadyStateAllocatesNothing) {
  const Segments segments = kMixed.segments();
  const Floats x = random_rows(segments, 40, 60);
  const Style style = random_style(segments.count(), 40);
  run(x, segments, style, After::snake), run(x, segments, style, After::snake);
  const int64_t growths = workspace_.growths();
  run(x, segments, style, After::snake);
  EXPECT_EQ(workspace_.growths(), growths);
}

TEST_P(SegmentNorm, WithoutSegmentsEveryRowIsAGap) {
  const Segments none{.total = 4};
  Floats x(12, NAN), y(12, 77.0f), style;
  const Style empty{{0}};
  adain(ctx_, view_of(x, {4, 3}), none, TensorView::of(empty.rows.data(), DType::f32, {0, 6}), kEps, {},
        view_of(y, {4, 3}));
  expect_same_bits(y, Floats(12));
  const TensorView term = view_of(x, {4, 3});
  y.assign(12, 77.0f);
  segment_sum(ctx_, {&term, 1}, none, 1, 1, view_of(y, {4, 3}));
  expect_same_bits(y, Floats(12));
}

INSTANTIATE_TEST_SUITE_P(Isa, SegmentNorm, every_isa(), name_of_isa);

}  // namespace
}  // namespace shoal::ops
