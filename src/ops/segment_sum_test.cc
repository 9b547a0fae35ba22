// The ops of segment_norm.h that are no norm: sums, doubled rows, mirror images.
#include <cmath>

#include "ops/op_testing.h"
#include "ops/segment_norm.h"
#include "ops/segment_norm_testing.h"

namespace shoal::ops {
namespace {

using segment_testing::Batch;
using segment_testing::crowd;
using segment_testing::expect_empty_gaps;
using segment_testing::Floats;
using segment_testing::kAlone;
using segment_testing::kAtARate;
using segment_testing::kMixed;
using segment_testing::random_rows;
using segment_testing::step_of;

class SegmentRows : public OpTest {
 protected:
  int64_t most_values() const { return on_gpu() ? 1'000'000 : 300'000; }
};

// Terms of a sum on the host and on the machine: columns [skip, skip + width) of rows of width + gap.
class SegmentSum : public SegmentRows {
 protected:
  static constexpr float kFactor = 1.0f / 3, kSlope = 0.1f;

  void fill(const Segments& segments, size_t count, int64_t width, int64_t gap, int64_t skip) {
    const Shape shape{segments.total_rows(), width + gap};
    memory_.clear(), here_.clear(), placed_.clear(), there_.clear();
    for (size_t i = 0; i < count; ++i) {
      memory_.push_back(random_rows(segments, shape[1], static_cast<unsigned>(30 + 10 * i)));
      placed_.push_back(put(memory_[i], shape));
      there_.push_back(placed_[i].view().columns(skip, skip + width));
    }
    for (Floats& memory : memory_) here_.push_back(view_of(memory, shape).columns(skip, skip + width));
  }

  std::vector<Floats> memory_;
  std::vector<Tensor> placed_;
  std::vector<TensorView> here_, there_;
};

TEST_P(SegmentSum, MatchesTheOracle) {
  for (const Batch& batch : {kAlone, kMixed, kAtARate})
    for (const int64_t width : {1, 33, 128})
      for (const size_t count : {1u, 2u, 3u}) {
        const Segments segments = batch.segments();
        const int64_t rows = segments.total_rows();
        fill(segments, count, width, 3, 2);
        ref::Values want, bound;
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t c = 0; c < width; ++c) {
            double sum = 0, size = 0;
            for (const TensorView& term : here_)
              sum += term.row<float>(row)[c], size += std::abs(term.row<float>(row)[c]);
            const double y = ref::leaky_relu(kFactor * sum, kSlope);
            want.push_back(std::isnan(y) ? 0 : y);  // of a gap
            bound.push_back(std::isnan(y) ? 1e-45 : 4 * kUnit * kFactor * size + 1e-40);
          }
        const Tensor y = garbage({rows, width});
        segment_sum(ctx(), there_, placed(segments), kFactor, kSlope, y);
        expect_close(get(y), want, bound);
        expect_empty_gaps(get(y), width, segments);
      }
}

// Into rows of their own, as 16 bits, and over the last term.
TEST_P(SegmentSum, HasTheBitsOfThePortableKernels) {
  for (const Batch& batch : {kAlone, kMixed, kAtARate, crowd()})
    for (const int64_t width : {1, 33, 128, 1090})
      for (const auto& [gap, skip] : {std::pair<int64_t, int64_t>{0, 0}, {8, 4}, {3, 1}}) {
        const Segments segments = batch.segments();
        const int64_t rows = segments.total_rows();
        if (rows * width > most_values()) continue;
        fill(segments, kMostSegmentTerms, width, gap, skip);
        for (size_t count = kMostSegmentTerms; count > 0; --count) {
          const std::span<const TensorView> here(here_.data(), count), there(there_.data(), count);
          const Floats want = on_portable_cpu([&] {
            const Tensor y = garbage({rows, width});
            segment_sum(ctx(), here, segments, kFactor, kSlope, y);
            return get(y);
          });
          const Tensor apart =
              put(Floats(static_cast<size_t>(rows * (width + gap)), 77.0f), {rows, width + gap});
          const TensorView y = apart.view().columns(skip, skip + width);
          segment_sum(ctx(), there, placed(segments), kFactor, kSlope, y);
          expect_same_bits(get(y), want);
          EXPECT_EQ(std::ranges::count(get(apart), 77.0f), rows * gap);
          for (const DType dtype : narrow_types()) {
            const Tensor narrow = garbage({rows, width}, dtype);
            segment_sum(ctx(), there, placed(segments), kFactor, kSlope, narrow);
            expect_same_bits(get(narrow), rounded_to(want, dtype));
          }
          segment_sum(ctx(), there, placed(segments), kFactor, kSlope, there.back());
          expect_same_bits(get(there.back()), want);
        }
      }
}

TEST_P(SegmentRows, DoubledRowsAreATransposedConvolutionOfEachSegment) {
  for (const Batch& batch : {kAlone, kMixed, kAtARate, crowd()})
    for (const int64_t width : {1, 16, 45, 1090})
      for (const int64_t gap : {0, 3, 4}) {
        const Segments segments = batch.segments();
        const int64_t rows = segments.total_rows(), stride = width + gap;
        if (rows * width > most_values()) continue;
        Floats memory = random_rows(segments, stride, 50), weight = random_values(3 * width, 51),
               bias = random_values(width, 52);
        const TensorView x = view_of(memory, {rows, stride}).columns(gap, stride);
        const Floats want = on_portable_cpu([&] {
          const Tensor y = garbage({2 * rows, width});
          double_rows(ctx(), x, segments, view_of(weight, {3, width}), view_of(bias, {width}), y);
          return get(y);
        });
        const Tensor apart = put(Floats(static_cast<size_t>(2 * rows * stride), 77.0f), {2 * rows, stride});
        const TensorView y = apart.view().columns(0, width);
        double_rows(ctx(), put(memory, {rows, stride}).view().columns(gap, stride), placed(segments),
                    put(weight, {3, width}), put(bias, {width}), y);
        const Floats got = get(y);
        expect_same_bits(got, want);
        EXPECT_EQ(std::ranges::count(get(apart), 77.0f), 2 * rows * gap);
        expect_empty_gaps(got, width, segments, 2);
        if (width > 45 || gap > 3) continue;
        for (int64_t s = 0; s < segments.count(); s += step_of(segments, 50)) {
          const int64_t first = segments.begin(s), last = first + segments.rows(s);
          const ref::Values own = wide(segment_testing::rows_of(x, first, last));
          const ref::Values size =
              ref::double_rows(magnitudes(own), magnitudes(wide(weight)), magnitudes(wide(bias)));
          ref::Values bound;
          for (const double m : size) bound.push_back(2 * kUnit * m + 1e-40);  // two fused sums
          expect_close({got.begin() + 2 * first * width, got.begin() + 2 * last * width},
                       ref::double_rows(own, wide(weight), wide(bias)), bound);
        }
      }
}

TEST_P(SegmentRows, FirstRowsAreMirrorImages) {
  for (const int64_t width : {5, 128, 600}) {
    const Segments segments = kMixed.segments().at(3);
    const Floats before = random_rows(segments, width, 61);
    const Tensor x = put(before, {segments.total_rows(), width});
    mirror_first_rows(ctx(), placed(segments), x);
    Floats expected = before;
    for (int64_t s = 0; s < segments.count(); ++s)
      std::copy_n(before.begin() + (segments.begin(s) + 2) * width, width,
                  expected.begin() + segments.begin(s) * width);
    expect_same_bits(get(x), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Machine, SegmentSum, testing::ValuesIn(every_machine()), name_of_machine);
INSTANTIATE_TEST_SUITE_P(Machine, SegmentRows, testing::ValuesIn(every_machine()), name_of_machine);

}  // namespace
}  // namespace shoal::ops
