#include "ops/snake_block.h"

#include <cmath>

#include "ops/op_testing.h"
#include "ops/segment_norm_testing.h"

namespace shoal::ops {
namespace {

using segment_testing::Batch;
using segment_testing::Floats;
using segment_testing::kEps;
using segment_testing::random_alpha;
using segment_testing::random_rows;
using segment_testing::Style;

// Gaps of ten rows and more: as wide as half of the reach of five taps of dilation 5.
const Batch kThree{{10, 30, 96}, {1, 50, 7}, 115};

class SnakeBlock : public OpTest {
 protected:
  struct Half {
    Style style;
    Floats alpha, weight, bias;
    int64_t taps, dilation;
    PackedMatrix conv;
    Tensor placed_style, placed_alpha;
  };
  struct Unit {
    Half first, second;
  };

  Half random_half(int64_t channels, int64_t taps, int64_t dilation, int64_t segments, unsigned seed) {
    Half half{.style = {random_values(segments * 2 * channels, seed, 0.7f)},
              .alpha = random_alpha(channels),
              .weight = random_values(channels * channels * taps, seed + 1, 0.1f),
              .bias = random_values(channels, seed + 2),
              .taps = taps,
              .dilation = dilation};
    half.placed_style = put(half.style.rows, {segments, 2 * channels});
    half.placed_alpha = put(half.alpha, {channels});
    half.conv = pack_conv1d(ctx(), view_of(half.weight, {channels, channels, taps}),
                            view_of(half.bias, {channels}), DType::f32);
    return half;
  }
  std::vector<Unit> random_units(int64_t channels, int64_t segments) {
    std::vector<Unit> units;
    for (const int64_t dilation : {1, 2, 5}) {
      const auto seed = static_cast<unsigned>(10 * dilation);
      units.push_back({random_half(channels, 5, dilation, segments, seed),
                       random_half(channels, 3, 1, segments, seed + 5)});
    }
    return units;
  }
  static SnakeUnit::Half view(const Half& half) {
    return {half.placed_style, half.placed_alpha, &half.conv, half.dilation};
  }
  Floats run(const Floats& x, const Segments& segments, const std::vector<Unit>& units, int64_t channels) {
    poison();
    std::vector<SnakeUnit> views;
    for (const Unit& unit : units) views.push_back({view(unit.first), view(unit.second)});
    const Shape shape{segments.total_rows(), channels};
    const Tensor in = put(x, shape), y = garbage(shape);
    snake_block(ctx(), in, placed(segments), views, kEps, y);
    expect_same_bits(get(in), x);
    return get(y);
  }

  // The output of one half for the rows of one segment.
  static ref::Values wanted(const Half& half, const ref::Values& x, int64_t segment, int64_t channels) {
    ref::Values z = ref::adain(x, half.style.scales(segment, channels), half.style.shifts(segment, channels),
                               static_cast<double>(kEps));
    for (size_t i = 0; i < z.size(); ++i)
      z[i] = ref::plain_snake(z[i], half.alpha[i % static_cast<size_t>(channels)]);
    // A causal convolution over additional zeros, as many as the centred one sees after a row.
    const int64_t reach = (half.taps - 1) / 2 * half.dilation;
    z.resize(z.size() + static_cast<size_t>(reach * channels));
    const ref::Kernel kernel{wide(half.weight), wide(half.bias), channels, channels, half.taps};
    const ref::Values y = ref::causal_conv1d(z, kernel, 1, half.dilation);
    return {y.begin() + reach * channels, y.end()};
  }
};

TEST_P(SnakeBlock, MatchesItsDefinition) {
  constexpr int64_t kChannels = 12;
  const Segments segments = kThree.segments();
  const std::vector<Unit> units = random_units(kChannels, segments.count());
  const Floats x = random_rows(segments, kChannels, 3, 1.0f);  // NaN in the gaps
  const Floats y = run(x, segments, units, kChannels);
  for (int64_t s = 0; s < segments.count(); ++s) {
    const auto begin = segments.begin(s) * kChannels, end = begin + segments.rows(s) * kChannels;
    ref::Values want = wide(Floats(x.begin() + begin, x.begin() + end));
    for (const Unit& unit : units) {
      const ref::Values added = wanted(unit.second, wanted(unit.first, want, s, kChannels), s, kChannels);
      for (size_t i = 0; i < want.size(); ++i) want[i] += added[i];
    }
    ref::Values bound;
    for (const double value : want) bound.push_back(2e-4 * (1 + std::abs(value)));
    expect_close({y.begin() + begin, y.begin() + end}, want, bound);
  }
}

TEST_P(SnakeBlock, RefusesMismatchedShapes) {
  const Segments segments = placed(kThree.segments());
  const std::vector<Unit> units = random_units(8, segments.count());
  std::vector<SnakeUnit> views = {{view(units[0].first), view(units[0].second)}};
  const Tensor in = garbage({115, 8}), out = garbage({115, 8});
  EXPECT_NO_THROW(snake_block(ctx(), in, segments, views, kEps, out));
  EXPECT_THROW(snake_block(ctx(), in, segments, {}, kEps, out), Error);
  EXPECT_THROW(snake_block(ctx(), in, segments, views, kEps, in), Error);
  EXPECT_THROW(snake_block(ctx(), in.view().slice(0, 114), segments, views, kEps, out), Error);
  Floats weight(8 * 8 * 2);
  const PackedMatrix even = pack_conv1d(ctx(), view_of(weight, {8, 8, 2}), {}, DType::f32);
  views[0].second.conv = &even;
  EXPECT_THROW(snake_block(ctx(), in, segments, views, kEps, out), Error);
}

INSTANTIATE_TEST_SUITE_P(Machine, SnakeBlock, testing::ValuesIn(every_machine()), name_of_machine);

}  // namespace
}  // namespace shoal::ops
