// Shared by the tests of the convolutions.
#pragma once

#include "ops/conv1d.h"
#include "ops/matrix_testing.h"

namespace shoal::ops {

// The histories of a batch as the ops keep them: in slots of a pool, in another order than the sequences,
// each surrounded by values that must not change.
class HistoryPool {
 public:
  HistoryPool(const std::vector<std::vector<float>>& histories, int64_t floats) : floats_(floats) {
    const auto sequences = static_cast<int64_t>(histories.size());
    pool_ = Tensor(DType::f32, {sequences + 1, kOffset + floats + 2});
    std::ranges::fill(pool_.span<float>(), kOther);
    for (int64_t s = 0; s < sequences; ++s) {
      slots_.push_back(static_cast<int32_t>(sequences - s));
      std::ranges::copy(histories[static_cast<size_t>(s)], history(s));
    }
  }

  ConvHistory view() const { return {floats_ > 0 ? pool_.view() : TensorView(), kOffset, slots_}; }

  void take(std::vector<std::vector<float>>& histories) {
    for (size_t s = 0; s < histories.size(); ++s) {
      float* const first = history(static_cast<int64_t>(s));
      histories[s].assign(first, first + floats_);
      std::fill_n(first, floats_, kOther);
    }
    EXPECT_THAT(pool_.span<float>(), testing::Each(kOther));
  }

 private:
  static constexpr int64_t kOffset = 3;
  static constexpr float kOther = -77.0f;

  float* history(int64_t s) const {
    return pool_.view().row<float>(slots_[static_cast<size_t>(s)]) + kOffset;
  }

  int64_t floats_;
  Tensor pool_;
  std::vector<int32_t> slots_;
};

inline std::vector<float> rows_of(const std::vector<float>& x, int64_t width, int64_t begin, int64_t end) {
  return {x.begin() + begin * width, x.begin() + end * width};
}

inline void append(std::vector<float>& all, const std::vector<float>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

struct Geometry {
  int64_t inputs, outputs, taps, dilation;
};

// Few channels (folded taps), odd ones, one output, one tap, wide dilation, channels that fill blocks
// exactly.
inline constexpr Geometry kGeometries[] = {{1, 24, 7, 1},  {16, 20, 7, 3}, {20, 16, 7, 9}, {40, 40, 3, 2},
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
    histories.resize(xs.size(), std::vector<float>(static_cast<size_t>(layer.look_back() * g.inputs)));
    for (size_t s = 0; s < xs.size(); ++s) {
      x.insert(x.end(), xs[s].begin(), xs[s].end());
      offsets.push_back(static_cast<int32_t>(static_cast<int64_t>(x.size()) / g.inputs));
    }
    HistoryPool pool(histories, layer.look_back() * g.inputs);
    std::vector<float> y(static_cast<size_t>(offsets.back() * g.outputs));
    const ConvInput input{view_of(x, {offsets.back(), g.inputs}),
                          {.rows = {offsets}},
                          pool.view(),
                          layer.alpha.empty() ? TensorView() : view_of(layer.alpha, {g.inputs})};
    causal_conv1d(ctx_, input, layer.weight, g.dilation, view_of(y, {offsets.back(), g.outputs}));
    pool.take(histories);
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

}  // namespace shoal::ops
