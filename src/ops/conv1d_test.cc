#include "ops/conv1d.h"

#include <numeric>

#include "ops/matrix_testing.h"

namespace shoal::ops {
namespace {

struct Geometry {
  int64_t inputs, outputs, taps, dilation;
};

// Few channels (folded taps), odd ones, one output, one tap, wide dilation, channels that fill blocks
// exactly.
constexpr Geometry kGeometries[] = {{1, 24, 7, 1},  {16, 20, 7, 3}, {20, 16, 7, 9}, {40, 40, 3, 2},
                                    {96, 1, 7, 1},  {33, 17, 5, 2}, {64, 48, 1, 1}, {15, 33, 2, 4},
                                    {65, 30, 3, 1}, {128, 32, 7, 9}};

class Conv1d : public MatrixTest {
 protected:
  struct Layer {
    Geometry geometry;
    PackedMatrix weight;
    ref::Kernel kernel;  // the same, as the matrix holds it
    std::vector<float> alpha;
    int64_t look_back() const { return (geometry.taps - 1) * geometry.dilation; }
  };

  Layer random_layer(Geometry g, bool snakes = false) {
    std::vector<float> w = random_values(g.inputs * g.outputs * g.taps, 11),
                       bias = random_values(g.outputs, 12);
    Layer layer{
        g,
        pack_conv1d(ctx_, view_of(w, {g.outputs, g.inputs, g.taps}), bias_view(bias), GetParam().dtype),
        {rounded(w, GetParam().dtype), wide(bias), g.outputs, g.inputs, g.taps},
        {}};
    if (snakes) {
      layer.alpha = random_values(g.inputs, 13);
      for (float& a : layer.alpha) a = std::abs(a) + 0.1f;
    }
    return layer;
  }

  // One call for several sequences: xs[s] are the new rows, histories[s] is read and replaced.
  std::vector<std::vector<float>> run(Layer& layer, const std::vector<std::vector<float>>& xs,
                                      std::vector<std::vector<float>>& histories) {
    const Geometry g = layer.geometry;
    std::vector<float> x;
    std::vector<int32_t> offsets = {0};
    std::vector<TensorView> views;
    histories.resize(xs.size(), std::vector<float>(static_cast<size_t>(layer.look_back() * g.inputs)));
    for (size_t s = 0; s < xs.size(); ++s) {
      x.insert(x.end(), xs[s].begin(), xs[s].end());
      offsets.push_back(static_cast<int32_t>(static_cast<int64_t>(x.size()) / g.inputs));
      views.push_back(layer.look_back() ? view_of(histories[s], {layer.look_back(), g.inputs})
                                        : TensorView());
    }
    std::vector<float> y(static_cast<size_t>(offsets.back() * g.outputs));
    const ConvInput input{view_of(x, {offsets.back(), g.inputs}),
                          {offsets},
                          views,
                          layer.alpha.empty() ? TensorView() : view_of(layer.alpha, {g.inputs})};
    causal_conv1d(ctx_, input, layer.weight, g.dilation, view_of(y, {offsets.back(), g.outputs}));
    std::vector<std::vector<float>> ys;
    for (size_t s = 0; s < xs.size(); ++s)
      ys.emplace_back(y.begin() + offsets[s] * g.outputs, y.begin() + offsets[s + 1] * g.outputs);
    return ys;
  }

  std::vector<float> run_alone(Layer& layer, const std::vector<float>& x) {
    std::vector<std::vector<float>> histories;
    return run(layer, {x}, histories)[0];
  }
};

std::vector<float> rows_of(const std::vector<float>& x, int64_t width, int64_t begin, int64_t end) {
  return {x.begin() + begin * width, x.begin() + end * width};
}

void append(std::vector<float>& all, const std::vector<float>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

TEST_P(Conv1d, MatchesTheReference) {
  for (const Geometry g : kGeometries) {
    SCOPED_TRACE(testing::Message() << g.inputs << " -> " << g.outputs << " k" << g.taps << " d"
                                    << g.dilation);
    Layer layer = random_layer(g);
    for (const int64_t rows : {1, 5, 70}) {
      const std::vector<float> x = random_values(rows * g.inputs, 14);
      const ref::Values in = rounded(x, GetParam().dtype);
      const ref::Values magnitude = ref::causal_conv1d(
          magnitudes(in),
          {magnitudes(layer.kernel.weight), magnitudes(layer.kernel.bias), g.outputs, g.inputs, g.taps}, 1,
          g.dilation);
      expect_close(run_alone(layer, x), ref::causal_conv1d(in, layer.kernel, 1, g.dilation),
                   sum_bound(magnitude, g.inputs * g.taps));
    }
  }
}

TEST_P(Conv1d, SnakesItsInput) {
  const Geometry g{33, 17, 3, 2};
  Layer layer = random_layer(g, /*snakes=*/true);
  const std::vector<float> x = random_values(40 * g.inputs, 14);
  ref::Values snaked, error;
  for (size_t i = 0; i < x.size(); ++i) {
    const double alpha = layer.alpha[i % layer.alpha.size()];
    snaked.push_back(ref::snake(x[i], alpha));
    // f32 sine, square and quotient; then, for bf16, the rounding itself (a value near a tie may go either
    // way).
    error.push_back(8 * kUnit * (std::abs(x[i]) + 1.0 / alpha));
    if (GetParam().dtype == DType::bf16) error.back() += 0x1p-8 * std::abs(snaked.back());
  }
  const ref::Kernel magnitude{magnitudes(layer.kernel.weight), magnitudes(layer.kernel.bias), 17, 33, 3};
  const ref::Kernel no_bias{magnitude.weight, {}, 17, 33, 3};
  ref::Values bound = sum_bound(ref::causal_conv1d(magnitudes(snaked), magnitude, 1, 2), 33 * 3);
  const ref::Values from_input = ref::causal_conv1d(error, no_bias, 1, 2);
  for (size_t i = 0; i < bound.size(); ++i) bound[i] += from_input[i];
  std::vector<std::vector<float>> histories;
  expect_close(run(layer, {x}, histories)[0], ref::causal_conv1d(snaked, layer.kernel, 1, 2), bound);
  // What is carried on are the inputs after the snake, not yet rounded.
  const ref::Values last(snaked.end() - layer.look_back() * 33, snaked.end());
  ref::Values history_bound;
  for (size_t i = x.size() - last.size(); i < x.size(); ++i)
    history_bound.push_back(8 * kUnit * (std::abs(x[i]) + 1.0 / layer.alpha[i % 33]));
  expect_close(histories[0], last, history_bound);
}

TEST_P(Conv1d, SnakingInsideEqualsSnakingBefore) {
  Layer layer = random_layer({40, 16, 3, 1}, /*snakes=*/true);
  std::vector<float> x = random_values(50 * 40, 17), snaked(x.size());
  const std::vector<float> inside = run_alone(layer, x);
  snake(ctx_, view_of(x, {50, 40}), view_of(layer.alpha, {40}), view_of(snaked, {50, 40}));
  layer.alpha.clear();
  expect_same_bits(inside, run_alone(layer, snaked));
}

TEST_P(Conv1d, ChunksOfAnySizeEqualOneShot) {
  std::mt19937 generator(15);
  for (const Geometry g : kGeometries) {
    SCOPED_TRACE(testing::Message() << g.inputs << " -> " << g.outputs << " k" << g.taps << " d"
                                    << g.dilation);
    Layer layer = random_layer(g, /*snakes=*/g.taps == 7);
    const int64_t rows = 90;
    const std::vector<float> x = random_values(rows * g.inputs, 16);
    std::vector<std::vector<float>> whole_history, history;
    const std::vector<float> whole = run(layer, {x}, whole_history)[0];
    std::vector<float> pieces;
    for (int64_t begin = 0; begin < rows;) {
      const int64_t most = std::uniform_int_distribution<int64_t>(0, 1)(generator) ? 2 : 60;
      const int64_t end = std::min(rows, begin + std::uniform_int_distribution<int64_t>(0, most)(generator));
      append(pieces, run(layer, {rows_of(x, g.inputs, begin, end)}, history)[0]);
      begin = end;
    }
    expect_same_bits(pieces, whole);
    expect_same_bits(history[0], whole_history[0]);
  }
}

TEST_P(Conv1d, ASequenceAloneEqualsItselfInARaggedBatch) {
  for (const std::vector<int64_t>& counts :
       {std::vector<int64_t>{0, 1, 5, 0, 3, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {40, 0, 100, 1, 67}, {0, 300}}) {
    for (const Geometry g : {Geometry{20, 16, 7, 9}, {65, 30, 3, 1}, {1, 24, 7, 1}, {64, 48, 1, 1}}) {
      Layer layer = random_layer(g, /*snakes=*/g.inputs == 65);
      std::vector<std::vector<float>> first, second, histories;
      for (size_t s = 0; s < counts.size(); ++s) {
        first.push_back(random_values(counts[s] * g.inputs, static_cast<unsigned>(20 + s)));
        second.push_back(
            random_values(counts[counts.size() - 1 - s] * g.inputs, static_cast<unsigned>(90 + s)));
      }
      const auto y_first = run(layer, first, histories), y_second = run(layer, second, histories);
      for (size_t s = 0; s < counts.size(); ++s) {
        SCOPED_TRACE(testing::Message() << "sequence " << s << " of " << counts.size() << ", " << g.inputs);
        std::vector<std::vector<float>> alone;
        expect_same_bits(y_first[s], run(layer, {first[s]}, alone)[0]);
        expect_same_bits(y_second[s], run(layer, {second[s]}, alone)[0]);
        expect_same_bits(histories[s], alone[0]);
      }
    }
  }
}

TEST_P(Conv1d, ASequencesNaNStaysInIt) {
  Layer layer = random_layer({20, 16, 7, 1});
  std::vector<std::vector<float>> xs = {random_values(9 * 20, 1), random_values(9 * 20, 2)}, histories;
  const auto clean = run(layer, xs, histories);
  std::fill(xs[0].begin(), xs[0].end(), NAN);
  histories.clear();
  const auto got = run(layer, xs, histories);
  EXPECT_TRUE(std::isnan(got[0][0]));
  expect_same_bits(got[1], clean[1]);
}

TEST_P(Conv1d, AddsToTheResidualStream) {
  const Geometry g{32, 20, 3, 1};
  Layer layer = random_layer(g);
  std::vector<float> x = random_values(30 * g.inputs, 3), scale = random_values(g.outputs, 4);
  const std::vector<float> plain = run_alone(layer, x);
  std::vector<float> y = random_values(30 * g.outputs, 5), history(2 * 32);
  std::vector<float> want;
  for (size_t i = 0; i < y.size(); ++i) want.push_back(y[i] + plain[i] * scale[i % 20]);
  const std::vector<int32_t> offsets = {0, 30};
  const std::vector<TensorView> histories = {view_of(history, {2, 32})};
  causal_conv1d(ctx_, {view_of(x, {30, 32}), {offsets}, histories, {}}, layer.weight, 1, view_of(y, {30, 20}),
                {.accumulate = true, .scale = view_of(scale, {20})});
  expect_same_bits(y, want);
}

// Strided: rows [frames, in] are read as [frames / s, s * in].
TEST_P(Conv1d, StridedMatchesTheReference) {
  struct Strided {
    int64_t inputs, outputs, size, stride;
  };
  for (const Strided c :
       {Strided{1, 8, 2, 2}, {3, 20, 4, 2}, {24, 18, 16, 8}, {32, 40, 8, 4}, {10, 5, 9, 3}}) {
    SCOPED_TRACE(testing::Message() << c.inputs << " -> " << c.outputs << " k" << c.size << " s" << c.stride);
    std::vector<float> w = random_values(c.inputs * c.outputs * c.size, 21),
                       bias = random_values(c.outputs, 22);
    const std::vector<float> x = random_values(40 * c.stride * c.inputs, 23);
    Layer layer{{c.stride * c.inputs, c.outputs, c.size / c.stride, 1},
                pack_strided_conv1d(ctx_, view_of(w, {c.outputs, c.inputs, c.size}), bias_view(bias),
                                    c.stride, GetParam().dtype),
                {},
                {}};
    const ref::Values in = rounded(x, GetParam().dtype), weight = rounded(w, GetParam().dtype);
    const ref::Kernel kernel{weight, wide(bias), c.outputs, c.inputs, c.size};
    const ref::Kernel magnitude{magnitudes(weight), magnitudes(wide(bias)), c.outputs, c.inputs, c.size};
    expect_close(run_alone(layer, x), ref::causal_conv1d(in, kernel, c.stride, 1),
                 sum_bound(ref::causal_conv1d(magnitudes(in), magnitude, c.stride, 1), c.inputs * c.size));
  }
}

// Transposed: the result [frames, s * out] is the memory of [frames * s, out].
TEST_P(Conv1d, TransposedMatchesTheReference) {
  struct Transposed {
    int64_t inputs, outputs, size, stride;
  };
  for (const Transposed c :
       {Transposed{5, 1, 4, 2}, {20, 3, 2, 2}, {32, 24, 16, 8}, {70, 12, 8, 4}, {9, 5, 9, 3}}) {
    SCOPED_TRACE(testing::Message() << c.inputs << " -> " << c.outputs << " k" << c.size << " s" << c.stride);
    std::vector<float> w = random_values(c.inputs * c.outputs * c.size, 31),
                       bias = random_values(c.outputs, 32);
    const std::vector<float> x = random_values(37 * c.inputs, 33);
    Layer layer{{c.inputs, c.stride * c.outputs, c.size / c.stride, 1},
                pack_transposed_conv1d(ctx_, view_of(w, {c.inputs, c.outputs, c.size}), bias_view(bias),
                                       c.stride, GetParam().dtype),
                {},
                {}};
    const ref::Values in = rounded(x, GetParam().dtype), weight = rounded(w, GetParam().dtype);
    const ref::Kernel kernel{weight, wide(bias), c.inputs, c.outputs, c.size};
    const ref::Kernel magnitude{magnitudes(weight), magnitudes(wide(bias)), c.inputs, c.outputs, c.size};
    expect_close(run_alone(layer, x), ref::causal_conv_transpose1d(in, kernel, c.stride),
                 sum_bound(ref::causal_conv_transpose1d(magnitudes(in), magnitude, c.stride),
                           c.inputs * c.size / c.stride));
  }
}

TEST_P(Conv1d, EveryInstructionSetGivesTheBitsOfThePortableOne) {
  if (GetParam().dtype == DType::bf16 && GetParam().isa == CpuIsa::avx512_bf16)
    GTEST_SKIP() << "VDPBF16PS has its own order";
  for (const Geometry g : kGeometries) {
    Layer layer = random_layer(g, /*snakes=*/g.inputs == 33);
    const std::vector<float> x = random_values(50 * g.inputs, 14);
    set_cpu_isa(GetParam().isa);
    const std::vector<float> got = run_alone(layer, x);
    set_cpu_isa(CpuIsa::portable);
    expect_same_bits(got, run_alone(layer, x));
  }
}

TEST_P(Conv1d, MismatchedShapesAreOurFault) {
  Layer layer = random_layer({8, 4, 3, 2});
  std::vector<float> x(80), y(40), history(4 * 8);
  const std::vector<int32_t> offsets = {0, 10}, falling = {0, 12, 10};
  const std::vector<TensorView> good = {view_of(history, {4, 8})}, narrow = {view_of(history, {8, 4})}, none;
  const TensorView in = view_of(x, {10, 8}), out = view_of(y, {10, 4});
  EXPECT_NO_THROW(causal_conv1d(ctx_, {in, {offsets}, good, {}}, layer.weight, 2, out));
  EXPECT_THROW(causal_conv1d(ctx_, {in, {offsets}, none, {}}, layer.weight, 2, out), Error);
  EXPECT_THROW(causal_conv1d(ctx_, {in, {offsets}, narrow, {}}, layer.weight, 2, out), Error);
  EXPECT_THROW(causal_conv1d(ctx_, {in, {offsets}, good, {}}, layer.weight, 1, out), Error);
  EXPECT_THROW(causal_conv1d(ctx_, {in, {offsets}, good, {}}, layer.weight, 0, out), Error);
  EXPECT_THROW(causal_conv1d(ctx_, {in, {falling}, good, {}}, layer.weight, 2, out), Error);
  EXPECT_THROW(causal_conv1d(ctx_, {in, {offsets}, good, out}, layer.weight, 2, out), Error);
  EXPECT_THROW(causal_conv1d(ctx_, {in, {offsets}, good, {}}, layer.weight, 2, in), Error);
  EXPECT_THROW(causal_conv1d(ctx_, {out, {offsets}, good, {}}, layer.weight, 2, out), Error);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Conv1d, testing::ValuesIn(matrix_cases()), name_of_case);

class DepthwiseConv1d : public testing::Test, protected MatrixFixture {
 protected:
  static constexpr int64_t kChannels = 37, kTaps = 7;

  std::vector<float> run(std::vector<float> x, std::vector<int32_t> offsets,
                         std::vector<std::vector<float>>& histories) {
    std::vector<TensorView> views;
    histories.resize(offsets.size() - 1, std::vector<float>((kTaps - 1) * kChannels));
    for (auto& history : histories) views.push_back(view_of(history, {kTaps - 1, kChannels}));
    std::vector<float> y(x.size());
    const int64_t rows = offsets.back();
    depthwise_conv1d(ctx_, {view_of(x, {rows, kChannels}), {offsets}, views, {}},
                     view_of(weight_, {kTaps, kChannels}), view_of(bias_, {kChannels}),
                     view_of(y, {rows, kChannels}));
    return y;
  }

  std::vector<float> weight_ = random_values(kTaps * kChannels, 41), bias_ = random_values(kChannels, 42);
};

TEST_F(DepthwiseConv1d, MatchesTheReference) {
  ref::Kernel kernel{{}, wide(bias_), kChannels, 1, kTaps};
  for (int64_t c = 0; c < kChannels; ++c)
    for (int64_t k = 0; k < kTaps; ++k)
      kernel.weight.push_back(weight_[static_cast<size_t>(k * kChannels + c)]);
  const ref::Kernel magnitude{magnitudes(kernel.weight), magnitudes(kernel.bias), kChannels, 1, kTaps};
  for (const int32_t rows : {1, 4, 300}) {
    const std::vector<float> x = random_values(rows * kChannels, 43);
    std::vector<std::vector<float>> histories;
    expect_close(run(x, {0, rows}, histories), ref::depthwise_conv1d(wide(x), kernel),
                 sum_bound(ref::depthwise_conv1d(magnitudes(wide(x)), magnitude), kTaps + 1));
  }
}

TEST_F(DepthwiseConv1d, ChunksAndBatchesEqualOneShot) {
  const std::vector<float> a = random_values(20 * kChannels, 44), b = random_values(20 * kChannels, 45);
  std::vector<std::vector<float>> alone_a, alone_b, both;
  std::vector<float> whole = run(a, {0, 20}, alone_a), got_a, got_b;
  append(whole, run(b, {0, 20}, alone_b));
  for (int32_t t = 0; t < 20; t += 4) {  // a in pieces of 4; b in pieces of 1 and 7
    const int32_t b0 = t / 8 * 8 + (t % 8 ? 1 : 0), b1 = t % 8 ? t / 8 * 8 + 8 : std::min(t + 1, 20);
    std::vector<float> x = rows_of(a, kChannels, t, t + 4);
    const int32_t b_end = t == 16 ? 20 : b1;
    append(x, rows_of(b, kChannels, b0, b_end));
    const std::vector<float> y = run(x, {0, 4, 4 + b_end - b0}, both);
    append(got_a, rows_of(y, kChannels, 0, 4));
    append(got_b, rows_of(y, kChannels, 4, 4 + b_end - b0));
  }
  append(got_a, got_b);
  expect_same_bits(got_a, whole);
  expect_same_bits(both[0], alone_a[0]);
  expect_same_bits(both[1], alone_b[0]);
}

}  // namespace
}  // namespace shoal::ops
