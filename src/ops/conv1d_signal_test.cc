// Convolutions of signals that begin with their history.
#include "ops/conv1d_testing.h"

namespace shoal::ops {
namespace {

// The "same" convolution of the first `rows` rows of x between zeros, from its definition.
ref::Values centred(const ref::Values& x, const ref::Kernel& kernel, int64_t dilation, int64_t rows) {
  const int64_t reach = (kernel.size - 1) / 2 * dilation;
  ref::Values y;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t n = 0; n < kernel.first; ++n) {
      double sum = kernel.bias[static_cast<size_t>(n)];
      for (int64_t tap = 0; tap < kernel.size; ++tap) {
        const int64_t from = row + tap * dilation - reach;
        if (from < 0 || from >= rows) continue;
        for (int64_t k = 0; k < kernel.second; ++k)
          sum += x[static_cast<size_t>(from * kernel.second + k)] *
                 kernel.weight[static_cast<size_t>((n * kernel.second + k) * kernel.size + tap)];
      }
      y.push_back(sum);
    }
  return y;
}

class SignalConv1d : public Conv1d {
 protected:
  std::vector<float> convolve(const Layer& layer, std::vector<float> x) {
    const Geometry g = layer.geometry;
    const auto rows = static_cast<int64_t>(x.size()) / g.inputs;
    std::vector<float> y(static_cast<size_t>((rows - layer.look_back()) * g.outputs), NAN);
    valid_conv1d(ctx_, view_of(x, {rows, g.inputs}), layer.weight, g.dilation,
                 view_of(y, {rows - layer.look_back(), g.outputs}));
    return y;
  }
};

TEST_P(SignalConv1d, EqualsTheCausalConvolutionOnceThatSeesOnlySignal) {
  for (const Geometry g : kGeometries) {
    SCOPED_TRACE(testing::Message() << g.inputs << " -> " << g.outputs << " k" << g.taps << " d"
                                    << g.dilation);
    Layer layer = random_layer(g);
    for (const int64_t rows : {0, 1, 7, 90}) {
      const std::vector<float> x = random_values((layer.look_back() + rows) * g.inputs, 18);
      const std::vector<float> causal = x.empty() ? x : run_alone(layer, x);
      expect_same_bits(convolve(layer, x),
                       rows_of(causal, g.outputs, layer.look_back(), layer.look_back() + rows));
    }
  }
}

TEST_P(SignalConv1d, WritesAndAddsToStridedRows) {
  for (const Geometry g : {Geometry{32, 20, 3, 1}, {1, 24, 7, 1}, {128, 100, 7, 3}}) {
    constexpr int64_t kRows = 150;
    Layer layer = random_layer(g);
    const int64_t inputs = kRows + layer.look_back();
    std::vector<float> x = random_values(inputs * g.inputs, 3);
    const std::vector<float> plain = convolve(layer, x);
    for (const bool accumulate : {false, true}) {
      std::vector<float> y = random_values(kRows * (g.outputs + 7), 5), want = y;
      for (int64_t row = 0; row < kRows; ++row)
        for (int64_t n = 0; n < g.outputs; ++n) {
          float& to = want[static_cast<size_t>(row * (g.outputs + 7) + 3 + n)];
          to = (accumulate ? to : 0.0f) + plain[static_cast<size_t>(row * g.outputs + n)];
        }
      valid_conv1d(ctx_, view_of(x, {inputs, g.inputs}), layer.weight, g.dilation,
                   view_of(y, {kRows, g.outputs + 7}).columns(3, 3 + g.outputs), {.accumulate = accumulate});
      expect_same_bits(y, want);
    }
  }
}

// Utterances with zeros around them, as wide as the convolution reaches to either side: one signal.
TEST_P(SignalConv1d, CentredOverPackedUtterancesEqualsEachUtteranceAlone) {
  for (const Geometry g : {Geometry{33, 20, 3, 1},
                           {128, 32, 7, 3},
                           {128, 16, 11, 5},
                           {1, 24, 7, 1},
                           {64, 22, 7, 1},
                           {40, 48, 1, 1},
                           {15, 1, 5, 2}}) {
    SCOPED_TRACE(testing::Message() << g.inputs << " -> " << g.outputs << " k" << g.taps << " d"
                                    << g.dilation);
    Layer layer = random_layer(g);
    const int64_t reach = (g.taps - 1) / 2 * g.dilation;
    const std::vector<float> gap(static_cast<size_t>(reach * g.inputs));
    std::vector<float> buffer = gap;
    std::vector<int64_t> starts;
    const std::vector<int64_t> counts = {1, 2, 60, 17, 131};
    for (const int64_t count : counts) {
      starts.push_back(static_cast<int64_t>(buffer.size()) / g.inputs);
      append(buffer, random_values(count * g.inputs, static_cast<unsigned>(70 + count)));
      append(buffer, gap);
    }
    const std::vector<float> all = convolve(layer, buffer);
    for (size_t s = 0; s < counts.size(); ++s) {
      // Row t of the result is centred at row t + reach.
      const std::vector<float> got =
          rows_of(all, g.outputs, starts[s] - reach, starts[s] - reach + counts[s]);
      const std::vector<float> padded =
          rows_of(buffer, g.inputs, starts[s] - reach, starts[s] + counts[s] + reach);
      expect_same_bits(got, convolve(layer, padded));
      const std::vector<float> alone = rows_of(buffer, g.inputs, starts[s], starts[s] + counts[s]);
      expect_close(got, centred(rounded(alone, GetParam().dtype), layer.kernel, g.dilation, counts[s]),
                   sum_bound(centred(magnitudes(rounded(alone, GetParam().dtype)),
                                     {magnitudes(layer.kernel.weight), magnitudes(layer.kernel.bias),
                                      g.outputs, g.inputs, g.taps},
                                     g.dilation, counts[s]),
                             g.inputs * g.taps));
    }
  }
}

TEST_P(SignalConv1d, MismatchedShapesAreOurFault) {
  Layer layer = random_layer({8, 4, 3, 2});
  std::vector<float> x(20 * 8), y(16 * 4);
  const auto call = [&](Shape in, Shape out, int64_t dilation) {
    valid_conv1d(ctx_, view_of(x, in), layer.weight, dilation, view_of(y, out));
  };
  EXPECT_THROW(call({20, 8}, {15, 4}, 2), Error);
  EXPECT_NO_THROW(call({20, 8}, {16, 4}, 2));
  EXPECT_THROW(call({20, 7}, {16, 4}, 2), Error);
  EXPECT_THROW(call({3, 8}, {0, 4}, 2), Error);
  EXPECT_THROW(call({20, 8}, {20, 4}, 0), Error);
}

INSTANTIATE_TEST_SUITE_P(Cpu, SignalConv1d, testing::ValuesIn(matrix_cases()), name_of_case);

}  // namespace
}  // namespace shoal::ops
