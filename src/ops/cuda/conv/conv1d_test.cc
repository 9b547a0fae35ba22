#include "ops/conv1d.h"

#include "ops/cuda/conv/conv1d_testing.h"

namespace shoal::ops::cuda {
namespace {

struct Geometry {
  int64_t inputs, outputs, taps, dilation;
};

std::ostream& operator<<(std::ostream& out, const Geometry& g) {
  return out << g.inputs << " -> " << g.outputs << " k" << g.taps << " d" << g.dilation;
}

// One input, one output, odd ones, one tap, wide dilation, more taps than a block has groups, channels that
// fill blocks exactly.
constexpr Geometry kGeometries[] = {{1, 24, 7, 1},  {16, 20, 7, 3},  {20, 16, 7, 9}, {40, 40, 3, 2},
                                    {96, 1, 7, 1},  {33, 17, 5, 2},  {64, 48, 1, 1}, {15, 33, 2, 4},
                                    {65, 30, 3, 1}, {128, 96, 7, 9}, {64, 1, 7, 1},  {24, 40, 9, 1},
                                    {1, 9, 7, 1},   {100, 100, 7, 1}};

class CudaConv1d : public ConvTest, public testing::WithParamInterface<DType> {
 protected:
  struct Layer {
    Geometry geometry;
    PackedMatrix weight;
    ref::Kernel kernel;  // the same, as the matrix holds it
    std::vector<float> alpha;
    Tensor alpha_there;
    int64_t look_back() const { return (geometry.taps - 1) * geometry.dilation; }
    TensorView snake() const { return alpha.empty() ? TensorView() : alpha_there.view(); }
  };
  static DType dtype() { return GetParam(); }
  static ref::Values narrow(const std::vector<float>& values) { return wide(rounded_to(values, dtype())); }

  Layer random_layer(Geometry g, bool snakes = false) {
    std::vector<float> w = random_values(g.inputs * g.outputs * g.taps, 11, 0.3f),
                       bias = random_values(g.outputs, 12);
    Layer layer{
        g,
        pack_conv1d(ctx(), view_of(w, {g.outputs, g.inputs, g.taps}), view_of(bias, {g.outputs}), dtype()),
        {narrow(w), wide(bias), g.outputs, g.inputs, g.taps},
        {},
        {}};
    if (!snakes) return layer;
    layer.alpha = random_alphas(g.inputs, 13);
    layer.alpha_there = put(layer.alpha, {g.inputs});
    return layer;
  }

  // One call for several sequences: xs[s] are the new rows, histories[s] is read and replaced.
  Rows run(const Layer& layer, const Rows& xs, Rows& histories, int64_t history_offset = kAligned,
           int64_t rate = 1, const Epilogue& epilogue = {}) {
    const Geometry g = layer.geometry;
    const Sequences s = place(xs, histories, g.inputs, layer.look_back(), history_offset, rate);
    const int64_t rows = s.host_offsets.back();
    const Tensor y = put(std::vector<float>(static_cast<size_t>(rows * g.outputs), NAN), {rows, g.outputs});
    causal_conv1d(ctx(), {s.x, s.rows(), s.history(), layer.snake()}, layer.weight, g.dilation, y, epilogue);
    take(s, histories);
    return apart(s, get(y), g.outputs);
  }
  std::vector<float> run_alone(const Layer& layer, const std::vector<float>& x,
                               const Epilogue& epilogue = {}) {
    Rows histories;
    return run(layer, {x}, histories, kAligned, 1, epilogue)[0];
  }

  static ref::Values expected(const Layer& layer, const ref::Values& in) {
    return ref::causal_conv1d(in, layer.kernel, 1, layer.geometry.dilation);
  }
  static ref::Values bound(const Layer& layer, const ref::Values& in) {
    const Geometry g = layer.geometry;
    const ref::Kernel magnitude{magnitudes(layer.kernel.weight), magnitudes(layer.kernel.bias), g.outputs,
                                g.inputs, g.taps};
    return product_bound(ref::causal_conv1d(magnitudes(in), magnitude, 1, g.dilation), g.inputs, dtype(),
                         g.taps);
  }
};

TEST_P(CudaConv1d, MatchesTheReference) {
  for (const Geometry g : kGeometries) {
    const Layer layer = random_layer(g);
    for (const int64_t rows : {1, 5, 70, 200}) {
      SCOPED_TRACE(testing::Message() << g << ", " << rows << " rows");
      const std::vector<float> x = random_values(rows * g.inputs, 14);
      expect_close(run_alone(layer, x), expected(layer, narrow(x)), bound(layer, narrow(x)));
    }
  }
}

TEST_P(CudaConv1d, SnakesItsInput) {
  for (const Geometry g : {Geometry{33, 17, 3, 2}, {64, 1, 7, 1}, {40, 24, 7, 9}, {64, 40, 1, 1}}) {
    SCOPED_TRACE(testing::Message() << g);
    const Layer layer = random_layer(g, /*snakes=*/true);
    const std::vector<float> x = random_values(100 * g.inputs, 14);
    ref::Values snaked, error, history_bound;
    for (size_t i = 0; i < x.size(); ++i) {
      const double alpha = layer.alpha[i % layer.alpha.size()];
      snaked.push_back(ref::snake(x[i], alpha));
      error.push_back(dtype() == DType::f32 ? snake_bound(x[i], alpha) : near_snake_bound(x[i], alpha));
      if (i >= x.size() - static_cast<size_t>(layer.look_back() * g.inputs))
        history_bound.push_back(error.back());
      // The rounding itself: a value near a tie may go either way.
      if (dtype() != DType::f32) error.back() += 2 * unit_of(dtype()) * std::abs(snaked.back());
    }
    const ref::Kernel no_bias{magnitudes(layer.kernel.weight), {}, g.outputs, g.inputs, g.taps};
    ref::Values allowed = bound(layer, snaked);
    const ref::Values from_input = ref::causal_conv1d(error, no_bias, 1, g.dilation);
    for (size_t i = 0; i < allowed.size(); ++i) allowed[i] += from_input[i];
    Rows histories;
    expect_close(run(layer, {x}, histories)[0], expected(layer, snaked), allowed);
    // The history holds the inputs after the snake, not yet rounded.
    const ref::Values last(snaked.end() - layer.look_back() * g.inputs, snaked.end());
    if (!last.empty()) expect_close(histories[0], last, history_bound);
  }
}

// Inputs rounded to 16 bits have another snake kernel.
TEST_P(CudaConv1d, SnakingInsideEqualsSnakingBefore) {
  if (dtype() != DType::f32) return;
  for (const Geometry g : {Geometry{40, 16, 3, 1}, {32, 1, 7, 1}}) {
    Layer layer = random_layer(g, /*snakes=*/true);
    const std::vector<float> x = random_values(50 * g.inputs, 17);
    const std::vector<float> inside = run_alone(layer, x);
    const Tensor before = put(x, {50, g.inputs}), snaked = put(x, {50, g.inputs});
    snake(ctx(), before, layer.alpha_there, snaked);
    layer.alpha.clear();
    expect_same_bits(inside, run_alone(layer, get(snaked)));
  }
}

TEST_P(CudaConv1d, ChunksOfAnySizeEqualOneShot) {
  std::mt19937 generator(15);
  for (const Geometry g : kGeometries) {
    SCOPED_TRACE(testing::Message() << g);
    const Layer layer = random_layer(g, /*snakes=*/g.taps == 7);
    const int64_t rows = 170;
    const std::vector<float> x = random_values(rows * g.inputs, 16);
    Rows whole_history, history;
    const std::vector<float> whole = run(layer, {x}, whole_history)[0];
    std::vector<float> pieces;
    for (int64_t begin = 0; begin < rows;) {
      const int64_t most = std::uniform_int_distribution<int64_t>(0, 1)(generator) ? 2 : 90;
      const int64_t end = std::min(rows, begin + std::uniform_int_distribution<int64_t>(0, most)(generator));
      if (begin < end) append(pieces, run(layer, {rows_of(x, g.inputs, begin, end)}, history, kUnaligned)[0]);
      begin = end;
    }
    expect_same_bits(pieces, whole);
    expect_same_bits(history[0], whole_history[0]);
  }
}

TEST_P(CudaConv1d, ASequenceIsTheSameAloneAndInARaggedBatch) {
  for (const std::vector<int64_t>& counts : {std::vector<int64_t>{0, 1, 5, 0, 3, 1},
                                             std::vector<int64_t>(40, 1),
                                             {40, 0, 100, 1, 67},
                                             {0, 300},
                                             {129, 0, 0, 128, 1}}) {
    for (const Geometry g :
         {Geometry{20, 16, 7, 9}, {65, 30, 3, 1}, {1, 24, 7, 1}, {64, 48, 1, 1}, {32, 1, 7, 1}}) {
      const Layer layer = random_layer(g, /*snakes=*/g.inputs != 20);
      Rows first, second, histories;
      for (size_t s = 0; s < counts.size(); ++s) {
        first.push_back(random_values(counts[s] * g.inputs, static_cast<unsigned>(20 + s)));
        second.push_back(
            random_values(counts[counts.size() - 1 - s] * g.inputs, static_cast<unsigned>(90 + s)));
      }
      const Rows y_first = run(layer, first, histories), y_second = run(layer, second, histories);
      for (size_t s = 0; s < counts.size(); ++s) {
        SCOPED_TRACE(testing::Message() << "sequence " << s << " of " << counts.size() << ", " << g);
        Rows alone;
        if (first[s].empty()) alone.emplace_back(static_cast<size_t>(layer.look_back() * g.inputs));
        if (!first[s].empty()) expect_same_bits(y_first[s], run(layer, {first[s]}, alone)[0]);
        if (!second[s].empty()) expect_same_bits(y_second[s], run(layer, {second[s]}, alone)[0]);
        expect_same_bits(histories[s], alone[0]);
      }
    }
  }
}

TEST_P(CudaConv1d, OffsetsCountRowsAtTheLowerRate) {
  for (const Geometry g : {Geometry{20, 16, 7, 3}, {32, 1, 7, 1}, {1, 24, 7, 1}}) {
    const Layer layer = random_layer(g, /*snakes=*/true);
    Rows xs, histories, histories_at_rate;
    for (const int64_t count : {8, 0, 24, 4})
      xs.push_back(random_values(count * g.inputs, static_cast<unsigned>(count + 1)));
    const Rows want = run(layer, xs, histories), got = run(layer, xs, histories_at_rate, kAligned, 4);
    for (size_t s = 0; s < xs.size(); ++s) {
      expect_same_bits(got[s], want[s]);
      expect_same_bits(histories_at_rate[s], histories[s]);
    }
  }
}

TEST_P(CudaConv1d, ANaNStaysInItsSequence) {
  for (const Geometry g : {Geometry{20, 16, 7, 1}, {32, 1, 7, 1}}) {
    const Layer layer = random_layer(g);
    Rows xs = {random_values(9 * g.inputs, 1), random_values(9 * g.inputs, 2)}, histories;
    const Rows clean = run(layer, xs, histories);
    std::fill(xs[0].begin(), xs[0].end(), NAN);
    histories.clear();
    const Rows got = run(layer, xs, histories);
    EXPECT_TRUE(std::isnan(got[0][0]));
    expect_same_bits(got[1], clean[1]);
  }
}

// Signals that begin with their history, in f32 and in the dtype of the product. A codec's last convolution
// has its own kernel, which does not support signals and sums in another order: there the oracle is the
// reference.
TEST_P(CudaConv1d, SignalsEqualTheCausalConvolutionOnceThatSeesOnlySignal) {
  for (const Geometry g : kGeometries) {
    const bool is_apart = g.outputs == 1 && GetParam() == DType::f32;
    SCOPED_TRACE(testing::Message() << g);
    const Layer layer = random_layer(g);
    for (const int64_t rows : {1, 7, 90, 300}) {
      const int64_t inputs = layer.look_back() + rows;
      const std::vector<float> x = random_values(inputs * g.inputs, 18), causal = run_alone(layer, x);
      const auto signal = [&](const auto& all) {
        return std::decay_t<decltype(all)>(all.begin() + layer.look_back() * g.outputs, all.end());
      };
      const std::vector<float> want = signal(causal);
      for (const DType read : {DType::f32, product_input(ctx(), layer.weight)}) {
        const Tensor y = put(std::vector<float>(want.size(), NAN), {rows, g.outputs});
        valid_conv1d(ctx(), put(x, {inputs, g.inputs}, read), layer.weight, g.dilation, y);
        if (is_apart)
          expect_close(get(y), signal(expected(layer, narrow(x))), signal(bound(layer, narrow(x))));
        else
          expect_same_bits(get(y), want);
      }
    }
  }
}

TEST_P(CudaConv1d, WritesAndAddsToStridedRows) {
  for (const Geometry g : {Geometry{32, 20, 3, 1}, {1, 24, 7, 1}, {128, 100, 7, 3}, {32, 1, 7, 1}}) {
    SCOPED_TRACE(testing::Message() << g);
    const Layer layer = random_layer(g);
    const std::vector<float> x = random_values(150 * g.inputs, 3), plain = run_alone(layer, x);
    const int64_t width = g.outputs + 7;
    for (const bool accumulate : {false, true}) {
      const std::vector<float> before = random_values(150 * width, 5);
      std::vector<float> want = before;
      for (int64_t row = 0; row < 150; ++row)
        for (int64_t n = 0; n < g.outputs; ++n) {
          float& to = want[static_cast<size_t>(row * width + 3 + n)];
          to = (accumulate ? to : 0.0f) + plain[static_cast<size_t>(row * g.outputs + n)];
        }
      Rows histories;
      const Sequences s = place({x}, histories, g.inputs, layer.look_back());
      const Tensor y = put(before, {150, width});
      causal_conv1d(ctx(), {s.x, s.rows(), s.history(), {}}, layer.weight, g.dilation,
                    y.view().columns(3, 3 + g.outputs), {.accumulate = accumulate});
      expect_same_bits(get(y), want);
    }
  }
}

TEST_P(CudaConv1d, Epilogues) {
  for (const Geometry g : {Geometry{32, 20, 3, 1}, {32, 1, 7, 1}, {1, 24, 7, 1}}) {
    SCOPED_TRACE(testing::Message() << g);
    const Layer layer = random_layer(g);
    const std::vector<float> x = random_values(30 * g.inputs, 3), scale = random_values(g.outputs, 4);
    const std::vector<float> plain = run_alone(layer, x);
    const std::vector<float> curved = run_alone(layer, x, {.activation = Activation::tanh});
    for (size_t i = 0; i < plain.size(); ++i)  // tanhf: 2 ulp
      EXPECT_NEAR(curved[i], std::tanh(static_cast<double>(plain[i])), 4 * kUnit);

    const std::vector<float> y0 = random_values(30 * g.outputs, 5);
    std::vector<float> want;
    for (size_t i = 0; i < y0.size(); ++i) want.push_back(y0[i] + plain[i] * scale[i % scale.size()]);
    Rows histories;
    const Sequences s = place({x}, histories, g.inputs, layer.look_back());
    const Tensor y = put(y0, {30, g.outputs}), scale_there = put(scale, {g.outputs});
    causal_conv1d(ctx(), {s.x, s.rows(), s.history(), {}}, layer.weight, g.dilation, y,
                  {.accumulate = true, .scale = scale_there});
    expect_same_bits(get(y), want);
  }
}

TEST_P(CudaConv1d, ResidualUnitsEqualTheirTwoConvolutions) {
  for (const int64_t channels : {12, 40, 96, 192}) {
    for (const int64_t dilation : {1, 9}) {
      SCOPED_TRACE(testing::Message() << channels << " channels, dilation " << dilation);
      const Layer wide_layer = random_layer({channels, channels, 7, dilation}, /*snakes=*/true),
                  narrow_layer = random_layer({channels, channels, 1, 1}, /*snakes=*/true);
      Rows xs, histories, histories_apart;
      for (const int64_t count : {3, 0, 50, 130})
        xs.push_back(random_values(count * channels, static_cast<unsigned>(count)));
      const Sequences s = place(xs, histories, channels, wide_layer.look_back());
      const Sequences apart_s = place(xs, histories_apart, channels, wide_layer.look_back());
      const Tensor between = put(std::vector<float>(static_cast<size_t>(s.x.elements()), NAN), s.x.shape());
      causal_conv1d(ctx(), {apart_s.x, apart_s.rows(), apart_s.history(), wide_layer.snake()},
                    wide_layer.weight, dilation, between);
      causal_conv1d(ctx(), {between, apart_s.rows(), {}, narrow_layer.snake()}, narrow_layer.weight, 1,
                    apart_s.x, {.accumulate = true});
      residual_unit(ctx(), s.x, s.rows(), s.history(),
                    {.wide = &wide_layer.weight,
                     .dilation = dilation,
                     .narrow = &narrow_layer.weight,
                     .wide_alpha = wide_layer.snake(),
                     .narrow_alpha = narrow_layer.snake()},
                    s.x);
      take(s, histories);
      take(apart_s, histories_apart);
      expect_same_bits(get(s.x), get(apart_s.x));
      for (size_t i = 0; i < xs.size(); ++i) expect_same_bits(histories[i], histories_apart[i]);
    }
  }
}

// A replayed graph reads its current offsets, slots and rows.
TEST_P(CudaConv1d, ReplaysReadTheCurrentContentsOfMemory) {
  ctx().graphs = &graphs();
  const Geometry g{40, 24, 7, 3};
  const Layer layer = random_layer(g, /*snakes=*/true);
  Rows none;
  const std::vector<float> x = random_values(20 * g.inputs, 6);
  const Sequences s = place({x, {}}, none, g.inputs, layer.look_back());
  const Tensor y = put(std::vector<float>(20 * 24), {20, g.outputs});
  Rows histories;
  for (int i = 0; i < 5; ++i) {
    const int split = 3 * i;
    const Rows xs = {rows_of(x, g.inputs, 0, split), rows_of(x, g.inputs, split, 20)};
    copy(put(std::vector<int32_t>{0, split, 20}, {3}), s.offsets);
    run_step(ctx(), {.owner = this, .rows = 20, .sequences = 2}, [&] {
      causal_conv1d(ctx(), {s.x, s.rows(), s.history(), layer.snake()}, layer.weight, g.dilation, y);
    });
    const Rows want = run(layer, xs, histories);
    std::vector<float> all = want[0];
    append(all, want[1]);
    expect_same_bits(get(y), all);
  }
}

// Strided: rows [frames, in] are read as [frames / s, s * in]. Transposed: the result [frames, s * out] is
// the memory of [frames * s, out].
TEST_P(CudaConv1d, StridedAndTransposedMatchTheReference) {
  const int64_t inputs = 10, outputs = 12, size = 8, stride = 4, frames = 30;
  std::vector<float> w = random_values(inputs * outputs * size, 21, 0.3f), bias = random_values(outputs, 22);
  const ref::Values weight = narrow(w), b = wide(bias);
  {
    const Layer layer{{stride * inputs, outputs, size / stride, 1},
                      pack_strided_conv1d(ctx(), view_of(w, {outputs, inputs, size}),
                                          view_of(bias, {outputs}), stride, dtype()),
                      {},
                      {},
                      {}};
    const std::vector<float> x = random_values(frames * stride * inputs, 23);
    const ref::Values magnitude = ref::causal_conv1d(
        magnitudes(narrow(x)), {magnitudes(weight), magnitudes(b), outputs, inputs, size}, stride, 1);
    expect_close(run_alone(layer, x),
                 ref::causal_conv1d(narrow(x), {weight, b, outputs, inputs, size}, stride, 1),
                 product_bound(magnitude, stride * inputs, dtype(), size / stride));
  }
  const Layer layer{{inputs, stride * outputs, size / stride, 1},
                    pack_transposed_conv1d(ctx(), view_of(w, {inputs, outputs, size}),
                                           view_of(bias, {outputs}), stride, dtype()),
                    {},
                    {},
                    {}};
  const std::vector<float> x = random_values(frames * inputs, 33);
  const ref::Values magnitude = ref::causal_conv_transpose1d(
      magnitudes(narrow(x)), {magnitudes(weight), magnitudes(b), inputs, outputs, size}, stride);
  expect_close(run_alone(layer, x),
               ref::causal_conv_transpose1d(narrow(x), {weight, b, inputs, outputs, size}, stride),
               product_bound(magnitude, inputs, dtype(), size / stride));
}

INSTANTIATE_TEST_SUITE_P(Matrices, CudaConv1d, testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace shoal::ops::cuda
