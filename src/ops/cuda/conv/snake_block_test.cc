// The kernels of a snake block against the ops that it is made of.
#include "ops/snake_block.h"

#include <array>

#include "ops/conv1d.h"
#include "ops/cuda/device/cuda_testing.h"
#include "ops/cuda/device/machine.h"
#include "ops/cuda_backend.h"
#include "ops/segment_norm.h"
#include "ops/segment_norm_testing.h"
#include "ops/sequence_testing.h"

namespace shoal::ops::cuda {
namespace {

using segment_testing::Batch;
using segment_testing::Floats;
using segment_testing::kEps;
using segment_testing::random_alpha;
using segment_testing::random_rows;

// Segments that end before, at and after the ends of pieces of 64, 128 and 256 rows, with gaps of 26 rows and
// more.
Batch pieces() {
  Batch batch{{}, {}, 30};
  for (const int32_t rows : {1, 63, 64, 65, 3, 127, 128, 129, 255, 256, 257, 5000, 40}) {
    batch.starts.push_back(static_cast<int32_t>(batch.total));
    batch.frames.push_back(rows);
    batch.total += rows + 26 + rows % 5;
  }
  return batch;
}

// So many pieces that every block of a grid gets several of them, in all of its buffers.
const Batch kManyPieces{{30, 9000}, {8900, 140'000}, 149'100};

const Batch kPieces = pieces();

class CudaSnakeBlock : public CudaTest, public testing::WithParamInterface<DType> {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (!IsSkipped() && !has_wgmma(ctx())) GTEST_SKIP() << "kernels of compute capability 9.0";
  }

  // A convolution with its norm's style for each segment.
  struct Half {
    Tensor style, alpha;
    PackedMatrix conv;
    int64_t dilation;

    SnakeUnit::Half view() const { return {style, alpha, &conv, dilation}; }
    SnakeUnit::Half of(int64_t segment) const {
      return {style.view().slice(segment, segment + 1), alpha, &conv, dilation};
    }
  };
  struct Unit {
    Half first, second;
  };

  Half random_half(int64_t channels, int64_t taps, int64_t dilation, int64_t segments, unsigned seed) {
    const float size = 1 / std::sqrt(static_cast<float>(channels * taps));
    Floats w = random_values(channels * channels * taps, seed, size),
           bias = random_values(channels, seed + 1);
    return {put(random_values(segments * 2 * channels, seed + 2, 0.5f), {segments, 2 * channels}),
            put(random_alpha(channels), {channels}),
            pack_conv1d(ctx(), view_of(w, {channels, channels, taps}), view_of(bias, {channels}), GetParam()),
            dilation};
  }
  std::vector<Unit> random_units(int64_t channels, int64_t taps, int64_t segments) {
    std::vector<Unit> units;
    for (const int64_t dilation : {1, 3, 5}) {
      const auto seed = static_cast<unsigned>(100 * dilation + taps);
      units.push_back({random_half(channels, taps, dilation, segments, seed),
                       random_half(channels, taps, 1, segments, seed + 10)});
    }
    return units;
  }
  static std::vector<SnakeUnit> views(const std::vector<Unit>& units) {
    std::vector<SnakeUnit> views;
    for (const Unit& unit : units) views.push_back({unit.first.view(), unit.second.view()});
    return views;
  }

  // One unit by its parts.
  Floats by_parts(const Floats& x, const Segments& segments, const Unit& unit, int64_t channels) {
    const Shape shape{segments.total_rows(), channels};
    const Tensor held = put(x, shape), between = garbage(shape), input = garbage(shape, GetParam());
    const auto half = [&](const Tensor& from, const Half& h, const Tensor& to, const Epilogue& epilogue) {
      ops::adain(ctx(), from, segments, h.style, kEps, {.snake_alpha = h.alpha}, input);
      const int64_t reach = (h.conv.taps - 1) / 2 * h.dilation;
      ops::valid_conv1d(ctx(), input, h.conv, h.dilation, to.view().slice(reach, shape[0] - reach), epilogue);
    };
    half(held, unit.first, between, {});
    half(between, unit.second, held, {.accumulate = true});
    return get(held);
  }

  Floats at_once(const Floats& x, const Segments& segments, std::span<const SnakeUnit> units,
                 int64_t channels) {
    poison();
    const Shape shape{segments.total_rows(), channels};
    const Tensor in = put(x, shape), y = garbage(shape);
    EXPECT_TRUE(has_snake_block(ctx(), units));
    ops::snake_block(ctx(), in, segments, units, kEps, y);
    return get(y);
  }

  // One unit at once and by its parts, segment by segment.   -> by its parts
  Floats expect_same_as_parts(const Floats& x, const Segments& segments, const Unit& one, int64_t channels) {
    const double unit = GetParam() == DType::bf16 ? 1.0 / 256 : 1.0 / 2048;
    const std::array own = {SnakeUnit{one.first.view(), one.second.view()}};
    const Floats got = at_once(x, segments, own, channels), want = by_parts(x, segments, one, channels);
    for (int64_t s = 0; s < segments.count(); ++s) {
      double difference = 0, size = 0, most = 0;
      const int64_t end = (segments.begin(s) + segments.rows(s)) * channels;
      for (int64_t i = segments.begin(s) * channels; i < end; ++i) {
        const auto at = static_cast<size_t>(i);
        const double off = static_cast<double>(got[at]) - want[at],
                     added = static_cast<double>(want[at]) - x[at];
        difference += off * off, size += added * added, most = std::max(most, std::abs(off));
      }
      // Less than what rounding all of it once costs: 1 / sqrt(12) of a unit.
      constexpr double kAllowed = 0.25;
      EXPECT_LE(std::sqrt(difference), kAllowed * unit * std::sqrt(size))
          << "segment " << s << ", most " << most;
      // No row may differ by more than a few roundings: rows of a lost piece would.
      EXPECT_LE(most, 64 * unit * std::sqrt(size / static_cast<double>(segments.rows(s) * channels)))
          << "segment " << s;
    }
    return want;
  }
};

// Both round what a convolution reads to 16 bits; sums and moments differ in the last bits of f32, so that
// now and then a value is rounded the other way. That is off by at most 0.14 of a rounding of what is added,
// and by 0.19 for three rows or one, whose few values make the moments.
TEST_P(CudaSnakeBlock, EqualsItsSeparateOps) {
  const Segments segments = placed(kPieces.segments());
  for (const int64_t channels : {128, 256})
    for (const int64_t taps : {1, 3, 7, 11}) {
      SCOPED_TRACE(testing::Message() << channels << " channels, " << taps << " taps");
      const std::vector<Unit> units = random_units(channels, taps, segments.count());
      Floats x = random_rows(segments, channels, 7, 1.5f);
      for (const Unit& one : units) x = expect_same_as_parts(x, segments, one, channels);
    }
}

TEST_P(CudaSnakeBlock, EqualsItsSeparateOpsWhenEveryBlockHasManyPieces) {
  const Segments segments = placed(kManyPieces.segments());
  for (const int64_t channels : {128, 256}) {
    SCOPED_TRACE(testing::Message() << channels << " channels");
    const std::vector<Unit> units = random_units(channels, 3, segments.count());
    expect_same_as_parts(random_rows(segments, channels, 7, 1.5f), segments, units[2], channels);
  }
}

TEST_P(CudaSnakeBlock, ASegmentIsTheSameAloneAndInEveryBatch) {
  const Segments segments = placed(kPieces.segments());
  for (const int64_t channels : {128, 256}) {
    const std::vector<Unit> units = random_units(channels, 7, segments.count());
    const Floats x = random_rows(segments, channels, 9);
    const Floats y = at_once(x, segments, views(units), channels);
    for (int64_t s = 0; s < segments.count(); ++s) {
      SCOPED_TRACE(testing::Message() << channels << " channels, segment " << s);
      const int64_t rows = segments.rows(s), first = segments.begin(s) * channels;
      const Batch alone{{3}, {static_cast<int32_t>(rows)}, rows + 5};
      Floats own_x(static_cast<size_t>((rows + 5) * channels), kNan);
      std::copy_n(x.begin() + first, rows * channels, own_x.begin() + 3 * channels);
      std::vector<SnakeUnit> own;
      for (const Unit& unit : units) own.push_back({unit.first.of(s), unit.second.of(s)});
      const Floats got = at_once(own_x, placed(alone.segments()), own, channels);
      expect_same_bits({got.begin() + 3 * channels, got.begin() + (3 + rows) * channels},
                       {y.begin() + first, y.begin() + first + rows * channels});
    }
  }
}

TEST_P(CudaSnakeBlock, ConsecutiveUnitsWaitForEachOther) {
  const Segments segments = placed(kPieces.segments());
  const std::vector<Unit> units = random_units(128, 3, segments.count());
  Floats x = random_rows(segments, 128, 11);
  const Floats y = at_once(x, segments, views(units), 128);
  for (const Unit& one : units) {
    const std::array own = {SnakeUnit{one.first.view(), one.second.view()}};
    x = at_once(x, segments, own, 128);
  }
  // Sums of a first unit's input are added up in another order.
  for (int64_t s = 0; s < segments.count(); ++s)
    for (int64_t i = segments.begin(s) * 128; i < (segments.begin(s) + segments.rows(s)) * 128; ++i)
      ASSERT_NEAR(y[static_cast<size_t>(i)], x[static_cast<size_t>(i)], 0.02) << i;
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaSnakeBlock, testing::Values(DType::bf16, DType::f16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace shoal::ops::cuda
