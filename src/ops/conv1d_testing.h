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

using Rows = std::vector<std::vector<float>>;  // per sequence

// Packed sequences with their histories in slots, as the ops take them: in slots of another order than the
// sequences, each history surrounded by values that must not change. Test: OpTest, or a test of a GPU alone.
template <typename Test>
class ConvTestOf : public Test {
 protected:
  // Where histories begin in their slots: aligned for vectors or not.
  static constexpr int64_t kAligned = 4, kUnaligned = 3;

  struct Sequences {
    std::vector<int32_t> host_offsets, host_slots;
    Tensor x, offsets, slots, pool;
    int64_t channels = 0, floats = 0, history_offset = 0, rate = 1;

    ConvRows rows() const { return {{host_offsets}, offsets, slots, rate}; }
    ConvHistory history() const {
      return {floats ? pool.view() : TensorView(), history_offset, {host_slots}};
    }
  };

  Sequences place(const Rows& xs, Rows& histories, int64_t channels, int64_t look_back,
                  int64_t history_offset = kAligned, int64_t rate = 1) {
    Sequences s;
    s.channels = channels, s.floats = look_back * channels, s.history_offset = history_offset, s.rate = rate;
    histories.resize(xs.size(), std::vector<float>(static_cast<size_t>(s.floats)));
    const auto sequences = static_cast<int64_t>(xs.size());
    const int64_t stride = (history_offset + s.floats + 5) / 4 * 4 + (history_offset == kAligned ? 0 : 1);
    std::vector<float> x, pool(static_cast<size_t>((sequences + 1) * stride), kOther);
    std::vector<int32_t> offsets = {0};
    s.host_offsets = {0};
    for (int64_t i = 0; i < sequences; ++i) {
      append(x, xs[static_cast<size_t>(i)]);
      s.host_offsets.push_back(static_cast<int32_t>(static_cast<int64_t>(x.size()) / channels));
      offsets.push_back(static_cast<int32_t>(s.host_offsets.back() / rate));
      s.host_slots.push_back(static_cast<int32_t>(sequences - i));
      std::ranges::copy(histories[static_cast<size_t>(i)],
                        pool.begin() + (sequences - i) * stride + history_offset);
    }
    s.x = this->put(x, {s.host_offsets.back(), channels});
    s.offsets = this->put(offsets, {sequences + 1});
    s.slots = this->put(s.host_slots, {sequences});
    s.pool = this->put(pool, {sequences + 1, stride});
    return s;
  }

  // Reads the histories back; checks that their surroundings are unchanged.
  void take(const Sequences& s, Rows& histories) {
    std::vector<float> pool = this->get(s.pool);
    const int64_t stride = s.pool.dim(1);
    for (size_t i = 0; i < histories.size(); ++i) {
      const auto first =
          pool.begin() + static_cast<int64_t>(histories.size() - i) * stride + s.history_offset;
      histories[i].assign(first, first + s.floats);
      std::fill_n(first, s.floats, kOther);
    }
    EXPECT_THAT(pool, testing::Each(kOther));
  }

  static Rows apart(const Sequences& s, const std::vector<float>& y, int64_t width) {
    Rows ys;
    for (size_t i = 0; i + 1 < s.host_offsets.size(); ++i)
      ys.push_back(rows_of(y, width, s.host_offsets[i], s.host_offsets[i + 1]));
    return ys;
  }

 private:
  static constexpr float kOther = -77.0f;
};

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
