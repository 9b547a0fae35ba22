#include "ops/segment_norm.h"

#include "ops/cuda/rows/segment_testing.h"
#include "ops/segment_norm_testing.h"

namespace shoal::ops::cuda {
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
using segment_testing::Style;

// Many short ones, so that blocks see several, and a long one of parts that are not full.
Batch crowd() {
  Batch batch{{}, {}, 5, 2, 1};
  for (int32_t i = 0; i < 300; ++i) {
    batch.starts.push_back(static_cast<int32_t>(batch.total));
    batch.frames.push_back(i == 150 ? 1801 : 1 + i * 7 % 5);
    batch.total += batch.frames.back() + 1 + i % 3;
  }
  return batch;
}

class SegmentNorm : public SegmentTest {
 protected:
  // y of x at every kind of stride: `gap` floats after each row of x and of the style.
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
  static Floats widened(const Floats& rows, int64_t width, int64_t gap) {
    Floats wide;
    for (auto row = rows.begin(); row != rows.end(); row += width) {
      wide.insert(wide.end(), row, row + width);
      wide.insert(wide.end(), static_cast<size_t>(gap), kNan);
    }
    return wide;
  }
  SegmentActivation activation(After after, int64_t width) {
    if (after == After::leaky) return {.slope = 0.2f};
    if (after == After::nothing) return {};
    alpha_ = random_alpha(width);
    alphas_.push_back(put(alpha_, {width}));
    return {.snake_alpha = alphas_.back()};
  }

  Floats alpha_;
  std::vector<Tensor> alphas_;
};

TEST_F(SegmentNorm, AdainMatchesTheOracleAndZeroesTheGaps) {
  for (const Batch& batch : {kAlone, kMixed, kAtARate, crowd()})
    for (const int64_t width : {1, 15, 64, 130, 256})
      for (const After after : {After::nothing, After::leaky, After::snake}) {
        const Segments segments = batch.segments();
        SCOPED_TRACE(testing::Message() << segments.count() << " segments, " << width << " channels, "
                                        << static_cast<int>(after));
        const Floats x = random_rows(segments, width, 5, 3.0f);
        const Style style = random_style(segments.count(), width);
        const Floats y = run(x, segments, style, after);
        for (int64_t s = 0; s < segments.count(); s += segments.count() > 100 ? 50 : 1) {
          const auto own = [&](const Floats& values) {
            return Floats(values.begin() + segments.begin(s) * width,
                          values.begin() + (segments.begin(s) + segments.rows(s)) * width);
          };
          expect_normed(own(y), wide(own(x)), style.scales(s, width), style.shifts(s, width), after, alpha_);
        }
        expect_empty_gaps(y, width, segments);
      }
}

TEST_F(SegmentNorm, StatisticsOfLongUtterancesStayExact) {
  const Batch batch{{0}, {120'001}, 120'001};
  constexpr int64_t kWidth = 4;
  const Floats x = random_rows(batch.segments(), kWidth, 6, 100.0f);
  const Style style = random_style(1, kWidth);
  expect_normed(run(x, batch.segments(), style), wide(x), style.scales(0, kWidth), style.shifts(0, kWidth));
}

TEST_F(SegmentNorm, ASegmentIsTheSameAloneAndInEveryBatch) {
  for (const Batch& batch : {kMixed, crowd()})
    for (const int64_t width : {70, 132}) {
      const Segments segments = batch.segments();
      const Floats x = random_rows(segments, width, 7);
      const Style style = random_style(segments.count(), width);
      const Floats y = run(x, segments, style, After::snake);
      for (int64_t s = 0; s < segments.count(); s += segments.count() > 100 ? 75 : 1) {
        const int64_t rows = segments.rows(s), first = segments.begin(s) * width;
        const Batch alone{{0}, {static_cast<int32_t>(rows)}, rows};
        const Style own{{style.rows.begin() + s * 2 * width, style.rows.begin() + (s + 1) * 2 * width}};
        const Floats got =
            run({x.begin() + first, x.begin() + first + rows * width}, alone.segments(), own, After::snake);
        expect_same_bits(got, {y.begin() + first, y.begin() + first + rows * width});
      }
    }
}

TEST_F(SegmentNorm, AdainRunsInPlaceFromStridedRowsAndIntoSixteenBits) {
  for (const int64_t width : {37, 64}) {
    const Segments segments = kMixed.segments();
    const Shape shape{segments.total_rows(), width};
    const Floats x = random_rows(segments, width, 9);
    const Style style = random_style(segments.count(), width);
    const Floats want = run(x, segments, style, After::leaky);
    for (const int64_t gap : {4, 5}) expect_same_bits(run(x, segments, style, After::leaky, gap), want);
    for (const DType dtype : {DType::bf16, DType::f16})
      expect_same_bits(run(x, segments, style, After::leaky, 0, dtype), rounded_to(want, dtype));
    const Tensor memory = put(x, shape);
    adain(ctx(), memory, placed(segments), put(style.rows, {segments.count(), 2 * width}), kEps,
          {.slope = 0.2f}, memory);
    expect_same_bits(get(memory), want);
  }
}

TEST_F(SegmentNorm, ANaNStaysInItsChannelOfItsSegment) {
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

TEST_F(SegmentNorm, AConstantChannelBecomesItsShift) {
  const Batch batch{{0}, {101}, 101};
  const Style style = random_style(1, 17);
  const Floats y = run(Floats(101 * 17, 2.5f), batch.segments(), style);
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], style.rows[17 + i % 17]);
}

// What follows must have the CPU's bits.
TEST_F(SegmentNorm, SumsEqualTheCpu) {
  for (const Batch& batch : {kAlone, kMixed, kAtARate, crowd()})
    for (const int64_t width : {1, 33, 128, 1090})
      for (const size_t count : {1u, 2u, 3u}) {
        const Segments segments = batch.segments();
        if (segments.total_rows() * width > 1'000'000) continue;
        const int64_t rows = segments.total_rows();
        for (const auto& [gap, skip] : {std::pair<int64_t, int64_t>{0, 0}, {8, 4}, {3, 1}}) {
          const int64_t stride = width + gap;
          std::vector<Floats> memory;
          std::vector<Tensor> there;
          std::vector<TensorView> here_views, views;
          for (size_t i = 0; i < count; ++i) {
            memory.push_back(random_rows(segments, stride, static_cast<unsigned>(30 + 10 * i)));
            there.push_back(put(memory[i], {rows, stride}));
            here_views.push_back(view_of(memory[i], {rows, stride}).columns(skip, skip + width));
            views.push_back(there[i].view().columns(skip, skip + width));
          }
          Floats want(static_cast<size_t>(rows * width));
          segment_sum(host_ctx(), here_views, segments, 1.0f / 3, 0.1f, view_of(want, {rows, width}));
          Floats background(static_cast<size_t>(rows * stride), 77.0f);
          const Tensor y = put(background, {rows, stride});
          segment_sum(ctx(), views, placed(segments), 1.0f / 3, 0.1f, y.view().columns(skip, skip + width));
          expect_same_bits(get(y.view().columns(skip, skip + width)), want);
          const Floats all = get(y);
          EXPECT_EQ(std::ranges::count(all, 77.0f), rows * gap);
          for (const DType dtype : {DType::bf16, DType::f16}) {
            const Tensor narrow = garbage({rows, width}, dtype);
            segment_sum(ctx(), views, placed(segments), 1.0f / 3, 0.1f, narrow);
            expect_same_bits(get(narrow), rounded_to(want, dtype));
          }
          segment_sum(ctx(), views, placed(segments), 1.0f / 3, 0.1f, views.back());
          expect_same_bits(get(views.back()), want);
        }
      }
}

TEST_F(SegmentNorm, DoubledRowsEqualTheCpu) {
  for (const Batch& batch : {kAlone, kMixed, kAtARate, crowd()})
    for (const int64_t width : {1, 16, 45, 1090})
      for (const int64_t gap : {0, 3, 4}) {
        const Segments segments = batch.segments();
        if (segments.total_rows() * width > 1'000'000) continue;
        const int64_t rows = segments.total_rows(), stride = width + gap;
        Floats memory = random_rows(segments, stride, 50), weight = random_values(3 * width, 51),
               bias = random_values(width, 52), want(static_cast<size_t>(2 * rows * width));
        double_rows(host_ctx(), view_of(memory, {rows, stride}).columns(gap, stride), segments,
                    view_of(weight, {3, width}), view_of(bias, {width}), view_of(want, {2 * rows, width}));
        const Tensor y = garbage({2 * rows, stride});
        double_rows(ctx(), put(memory, {rows, stride}).view().columns(gap, stride), placed(segments),
                    put(weight, {3, width}), put(bias, {width}), y.view().columns(0, width));
        expect_same_bits(get(y.view().columns(0, width)), want);
      }
}

TEST_F(SegmentNorm, FirstRowsAreMirrorImages) {
  for (const int64_t width : {5, 128, 600}) {
    const Segments segments = kMixed.segments().at(3);
    Floats x = random_rows(segments, width, 61);
    const Shape shape{segments.total_rows(), width};
    const Tensor there = put(x, shape);
    mirror_first_rows(host_ctx(), segments, view_of(x, shape));
    mirror_first_rows(ctx(), placed(segments), there);
    const Floats got = get(there);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_TRUE(got[i] == x[i] || (std::isnan(got[i]) && std::isnan(x[i]))) << i;
  }
}

}  // namespace
}  // namespace shoal::ops::cuda
