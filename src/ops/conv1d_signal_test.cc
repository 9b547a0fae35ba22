// Convolutions of whole signals: nothing is looked back at, nothing kept.
#include "ops/conv1d_testing.h"

namespace shoal::ops {
namespace {

class SignalConv1d : public Conv1d {};

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

TEST_P(SignalConv1d, WithoutAPoolEverySequenceBeginsAfterSilence) {
  for (const Geometry g : kGeometries) {
    SCOPED_TRACE(testing::Message() << g.inputs << " -> " << g.outputs << " k" << g.taps << " d"
                                    << g.dilation);
    Layer layer = random_layer(g, /*snakes=*/g.inputs == 33);
    const TensorView alpha = layer.alpha.empty() ? TensorView() : view_of(layer.alpha, {g.inputs});
    for (const std::vector<int32_t>& offsets :
         {std::vector<int32_t>{0, 90}, {0, 1, 1, 40, 43, 110}, {0, 1, 2, 3, 4, 5, 6, 7}}) {
      std::vector<float> x = random_values(offsets.back() * g.inputs, 18), want,
                         y(static_cast<size_t>(offsets.back() * g.outputs), NAN);
      std::vector<std::vector<float>> xs, silence;
      for (size_t s = 0; s + 1 < offsets.size(); ++s)
        xs.push_back(rows_of(x, g.inputs, offsets[s], offsets[s + 1]));
      for (const std::vector<float>& own : run(layer, xs, silence)) append(want, own);
      for (int call = 0; call < 2; ++call) {  // the second one begins after silence, too
        causal_conv1d(ctx_, {view_of(x, {offsets.back(), g.inputs}), {.rows = {offsets}}, {}, alpha},
                      layer.weight, g.dilation, view_of(y, {offsets.back(), g.outputs}));
        expect_same_bits(y, want);
      }
    }
  }
}

TEST_P(SignalConv1d, WritesAndAddsToStridedRows) {
  for (const Geometry g : {Geometry{32, 20, 3, 1}, {1, 24, 7, 1}, {128, 100, 7, 3}}) {
    constexpr int64_t kRows = 150;
    Layer layer = random_layer(g);
    std::vector<float> x = random_values(kRows * g.inputs, 3);
    const std::vector<float> plain = run_alone(layer, x);
    for (const bool accumulate : {false, true}) {
      std::vector<float> y = random_values(kRows * (g.outputs + 7), 5), want = y;
      for (int64_t row = 0; row < kRows; ++row)
        for (int64_t n = 0; n < g.outputs; ++n) {
          float& to = want[static_cast<size_t>(row * (g.outputs + 7) + 3 + n)];
          to = (accumulate ? to : 0.0f) + plain[static_cast<size_t>(row * g.outputs + n)];
        }
      const std::vector<int32_t> offsets = {0, kRows};
      causal_conv1d(ctx_, {view_of(x, {kRows, g.inputs}), {.rows = {offsets}}, {}, {}}, layer.weight,
                    g.dilation, view_of(y, {kRows, g.outputs + 7}).columns(3, 3 + g.outputs),
                    {.accumulate = accumulate});
      expect_same_bits(y, want);
    }
  }
}

// Utterances with zeros between them, as wide as the convolution reaches to either side: one sequence for all
// of them, read `reach` rows later.
TEST_P(SignalConv1d, CentredOverUtterancesEndToEndIsThatOfEachAlone) {
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
    const auto convolve = [&](std::vector<float> x) {
      const auto rows = static_cast<int32_t>(static_cast<int64_t>(x.size()) / g.inputs);
      const std::vector<int32_t> offsets = {0, rows};
      std::vector<float> y(static_cast<size_t>(rows * g.outputs));
      causal_conv1d(ctx_, {view_of(x, {rows, g.inputs}), {.rows = {offsets}}, {}, {}}, layer.weight,
                    g.dilation, view_of(y, {rows, g.outputs}));
      return y;
    };
    const std::vector<float> gap(static_cast<size_t>(reach * g.inputs));
    std::vector<float> buffer;
    std::vector<int64_t> starts;
    const std::vector<int64_t> counts = {1, 2, 60, 17, 131};
    for (const int64_t count : counts) {
      starts.push_back(static_cast<int64_t>(buffer.size()) / g.inputs);
      append(buffer, random_values(count * g.inputs, static_cast<unsigned>(70 + count)));
      append(buffer, gap);
    }
    const std::vector<float> all = convolve(buffer);
    for (size_t s = 0; s < counts.size(); ++s) {
      std::vector<float> alone = rows_of(buffer, g.inputs, starts[s], starts[s] + counts[s] + reach);
      const std::vector<float> got =
          rows_of(all, g.outputs, starts[s] + reach, starts[s] + counts[s] + reach);
      expect_same_bits(got, rows_of(convolve(alone), g.outputs, reach, counts[s] + reach));
      expect_close(got, centred(rounded(alone, GetParam().dtype), layer.kernel, g.dilation, counts[s]),
                   sum_bound(centred(magnitudes(rounded(alone, GetParam().dtype)),
                                     {magnitudes(layer.kernel.weight), magnitudes(layer.kernel.bias),
                                      g.outputs, g.inputs, g.taps},
                                     g.dilation, counts[s]),
                             g.inputs * g.taps));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, SignalConv1d, testing::ValuesIn(matrix_cases()), name_of_case);

}  // namespace
}  // namespace shoal::ops
