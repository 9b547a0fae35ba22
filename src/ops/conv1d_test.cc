#include "ops/conv1d_testing.h"

namespace shoal::ops {
namespace {

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
  // The history holds the inputs after the snake, not yet rounded.
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

TEST_P(Conv1d, ASequenceIsTheSameAloneAndInARaggedBatch) {
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

TEST_P(Conv1d, ANaNStaysInItsSequence) {
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
  const std::vector<int32_t> offsets = {0, 30}, slots = {0};
  const ConvHistory histories{view_of(history, {1, 2 * 32}), 0, slots};
  causal_conv1d(ctx_, {view_of(x, {30, 32}), {.rows = {offsets}}, histories, {}}, layer.weight, 1,
                view_of(y, {30, 20}), {.accumulate = true, .scale = view_of(scale, {20})});
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

TEST_P(Conv1d, EveryInstructionSetGivesTheBitsOfThePortableKernel) {
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
  std::vector<float> x(80), y(40), history(3 * 40);
  const std::vector<int32_t> offsets = {0, 10}, falling = {0, 12, 10}, two = {0, 4, 10}, first = {0},
                             last = {2}, beyond = {3}, negative = {-1}, both = {2, 0}, twice = {1, 1}, none;
  const TensorView in = view_of(x, {10, 8}), out = view_of(y, {10, 4}), pool = view_of(history, {3, 40});
  const auto run = [&](const TensorView& from, const std::vector<int32_t>& rows, const ConvHistory& kept) {
    causal_conv1d(ctx_, {from, {.rows = {rows}}, kept, {}}, layer.weight, 2, out);
  };
  EXPECT_NO_THROW(run(in, offsets, {pool, 0, first}));
  EXPECT_NO_THROW(run(in, offsets, {pool, 8, last}));
  EXPECT_NO_THROW(run(in, two, {pool, 0, both}));
  EXPECT_THROW(run(in, offsets, {pool, 9, first}), Error);
  EXPECT_THROW(run(in, offsets, {pool, -1, first}), Error);
  EXPECT_THROW(run(in, offsets, {pool, 0, none}), Error);
  EXPECT_THROW(run(in, offsets, {pool, 0, both}), Error);
  EXPECT_THROW(run(in, offsets, {pool, 0, beyond}), Error);
  EXPECT_THROW(run(in, offsets, {pool, 0, negative}), Error);
  EXPECT_THROW(run(in, two, {pool, 0, twice}), Error);
  EXPECT_THROW(run(in, offsets, {pool.columns(0, 36), 0, first}), Error);
  EXPECT_THROW(run(in, offsets, {{}, 0, first}), Error);
  EXPECT_THROW(run(in, falling, {pool, 0, both}), Error);
  EXPECT_THROW(run(out, offsets, {pool, 0, first}), Error);
  const ConvInput good{in, {.rows = {offsets}}, {pool, 0, first}, {}};
  EXPECT_THROW(causal_conv1d(ctx_, good, layer.weight, 0, out), Error);
  EXPECT_THROW(causal_conv1d(ctx_, good, layer.weight, 3, out), Error);
  EXPECT_THROW(causal_conv1d(ctx_, good, layer.weight, 2, in), Error);
  EXPECT_THROW(causal_conv1d(ctx_, {in, {.rows = {offsets}}, {pool, 0, first}, out}, layer.weight, 2, out),
               Error);
}

class ResidualUnit : public Conv1d {
 protected:
  static constexpr int64_t kChannels = 24, kDilation = 3;

  // One call, or the two convolutions that it replaces.
  std::vector<float> run(std::vector<float> x, const std::vector<int32_t>& offsets,
                         std::vector<std::vector<float>>& histories, bool as_one) {
    const int64_t rows = offsets.back();
    histories.resize(offsets.size() - 1, std::vector<float>(6 * kDilation * kChannels));
    HistoryPool pool(histories, 6 * kDilation * kChannels);
    const TensorView view = view_of(x, {rows, kChannels}), wide_alpha = view_of(wide_.alpha, {kChannels}),
                     narrow_alpha = view_of(narrow_.alpha, {kChannels});
    if (as_one) {
      residual_unit(ctx_, view, {.rows = {offsets}}, pool.view(),
                    {&wide_.weight, kDilation, &narrow_.weight, wide_alpha, narrow_alpha}, view);
    } else {
      std::vector<float> between(x.size());
      const TensorView h = view_of(between, {rows, kChannels});
      causal_conv1d(ctx_, {view, {.rows = {offsets}}, pool.view(), wide_alpha}, wide_.weight, kDilation, h);
      causal_conv1d(ctx_, {h, {.rows = {offsets}}, {}, narrow_alpha}, narrow_.weight, 1, view,
                    {.accumulate = true});
    }
    pool.take(histories);
    return x;
  }

  void SetUp() override {
    Conv1d::SetUp();
    if (IsSkipped()) return;
    wide_ = random_layer({kChannels, kChannels, 7, kDilation}, /*snakes=*/true);
    narrow_ = random_layer({kChannels, kChannels, 1, 1}, /*snakes=*/true);
  }

  Layer wide_, narrow_;
};

TEST_P(ResidualUnit, EqualsItsTwoConvolutions) {
  std::vector<std::vector<float>> histories, want_histories;
  for (const std::vector<int32_t>& offsets :
       {std::vector<int32_t>{0, 30, 30, 37}, {0, 1, 2, 3}, {0, 0, 0, 9}, {0, 0, 0, 0}}) {
    const std::vector<float> x =
        random_values(offsets.back() * kChannels, static_cast<unsigned>(offsets[1] + 5));
    const std::vector<float> got = run(x, offsets, histories, true);
    expect_same_bits(got, run(x, offsets, want_histories, false));
    for (size_t s = 0; s < histories.size(); ++s) expect_same_bits(histories[s], want_histories[s]);
  }
}

TEST_P(ResidualUnit, MismatchedConvolutionsAreOurFault) {
  const Layer other = random_layer({kChannels, 16, 1, 1});
  const Layer two_taps = random_layer({kChannels, kChannels, 2, 1});
  std::vector<float> x(kChannels), history(6 * kDilation * kChannels);
  const std::vector<int32_t> offsets = {0, 1}, slots = {0};
  const auto run = [&](const PackedMatrix& wide, const PackedMatrix& narrow) {
    const TensorView view = view_of(x, {1, kChannels});
    residual_unit(ctx_, view, {.rows = {offsets}},
                  {view_of(history, {1, 6 * kDilation * kChannels}), 0, slots},
                  {&wide, kDilation, &narrow, {}, {}}, view);
  };
  EXPECT_NO_THROW(run(wide_.weight, narrow_.weight));
  EXPECT_THROW(run(wide_.weight, other.weight), Error);
  EXPECT_THROW(run(wide_.weight, two_taps.weight), Error);
  EXPECT_THROW(run(other.weight, narrow_.weight), Error);
}

INSTANTIATE_TEST_SUITE_P(Cpu, ResidualUnit, testing::ValuesIn(matrix_cases()), name_of_case);

INSTANTIATE_TEST_SUITE_P(Cpu, Conv1d, testing::ValuesIn(matrix_cases()), name_of_case);

}  // namespace
}  // namespace shoal::ops
