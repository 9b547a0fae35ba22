// Convolutions of signals that begin with their history.
#include <set>

#include "ops/conv1d_testing.h"
#include "ops/transfer.h"

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
  // x: f32, or `read`, which holds it already.
  std::vector<float> convolve(const Layer& layer, const std::vector<float>& x, DType read = DType::f32) {
    const Geometry g = layer.geometry;
    const auto rows = static_cast<int64_t>(x.size()) / g.inputs;
    const Tensor in = put(x, {rows, g.inputs}, read), y = garbage({rows - layer.look_back(), g.outputs});
    valid_conv1d(ctx(), in, layer.weight, g.dilation, y);
    return get(y);
  }
};

// In f32 and in the dtype of the product. On a GPU an f32 convolution of one output has its own kernel, which
// does not support signals and sums in another order: there the oracle is the reference.
TEST_P(SignalConv1d, EqualsTheCausalConvolutionOnceThatSeesOnlySignal) {
  for (const Geometry g : kGeometries) {
    SCOPED_TRACE(testing::Message() << g);
    const bool is_apart = on_gpu() && g.outputs == 1 && dtype() == DType::f32;
    const Layer layer = random_layer(g);
    for (const int64_t rows : {0, 1, 7, 90, 300}) {
      if (rows == 300 && !on_gpu()) continue;  // a block of a CPU has far fewer
      const std::vector<float> x = random_values((layer.look_back() + rows) * g.inputs, 18);
      const auto signal = [&](const auto& all) {
        return std::decay_t<decltype(all)>(all.begin() + layer.look_back() * g.outputs, all.end());
      };
      const std::vector<float> want = signal(run_alone(layer, x));
      for (const DType read : std::set{DType::f32, product_input(ctx(), layer.weight)}) {
        const std::vector<float> got = convolve(layer, x, read);
        if (is_apart)
          expect_close(got, signal(expected(layer, narrow(x))), signal(bound(layer, narrow(x))));
        else
          expect_same_bits(got, want);
      }
    }
  }
}

TEST_P(SignalConv1d, WritesAndAddsToStridedRows) {
  for (const Geometry g : {Geometry{32, 20, 3, 1}, {1, 24, 7, 1}, {128, 100, 7, 3}}) {
    SCOPED_TRACE(testing::Message() << g);
    const Layer layer = random_layer(g);
    const int64_t inputs = 150 + layer.look_back();
    const std::vector<float> x = random_values(inputs * g.inputs, 3);
    const Tensor in = put(x, {inputs, g.inputs});
    expect_strided(g.outputs, convolve(layer, x), [&](TensorView y, const Epilogue& epilogue) {
      valid_conv1d(ctx(), in, layer.weight, g.dilation, y, epilogue);
    });
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
    SCOPED_TRACE(testing::Message() << g);
    const Layer layer = random_layer(g);
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
      const ref::Values alone = narrow(rows_of(buffer, g.inputs, starts[s], starts[s] + counts[s]));
      expect_close(got, centred(alone, layer.kernel, g.dilation, counts[s]),
                   bound_of(centred(magnitudes(alone), magnitudes_of(layer.kernel), g.dilation, counts[s]),
                            g.inputs, g.taps));
    }
  }
}

TEST_P(SignalConv1d, MismatchedShapesAreOurFault) {
  const Layer layer = random_layer({8, 4, 3, 2});
  const auto call = [&](Shape in, Shape out, int64_t dilation) {
    valid_conv1d(ctx(), garbage(in), layer.weight, dilation, garbage(out));
    synchronize(ctx());
  };
  EXPECT_THROW(call({20, 8}, {15, 4}, 2), Error);
  EXPECT_NO_THROW(call({20, 8}, {16, 4}, 2));
  EXPECT_THROW(call({20, 7}, {16, 4}, 2), Error);
  EXPECT_THROW(call({3, 8}, {0, 4}, 2), Error);
  EXPECT_THROW(call({20, 8}, {20, 4}, 0), Error);
}

INSTANTIATE_TEST_SUITE_P(Machine, SignalConv1d, testing::ValuesIn(products_on(every_product_machine())),
                         name_of_product);

}  // namespace
}  // namespace shoal::ops
