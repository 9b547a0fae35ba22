// Shared by the tests of the convolutions.
#pragma once

#include "ops/conv1d.h"
#include "ops/product_testing.h"

namespace shoal::ops {

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

inline std::ostream& operator<<(std::ostream& out, const Geometry& g) {
  return out << g.inputs << " -> " << g.outputs << " k" << g.taps << " d" << g.dilation;
}

// Few channels (folded taps), odd ones, one output, one tap, wide dilation, more taps than a block of a GPU
// has groups, channels that fill blocks exactly.
inline constexpr Geometry kGeometries[] = {{1, 24, 7, 1},  {16, 20, 7, 3},   {20, 16, 7, 9}, {40, 40, 3, 2},
                                           {96, 1, 7, 1},  {33, 17, 5, 2},   {64, 48, 1, 1}, {15, 33, 2, 4},
                                           {65, 30, 3, 1}, {128, 32, 7, 9},  {64, 1, 7, 1},  {24, 40, 9, 1},
                                           {1, 9, 7, 1},   {100, 100, 7, 1}, {128, 96, 7, 9}};

class Conv1d : public ConvTestOf<ProductTest> {
 protected:
  struct Layer {
    Geometry geometry;
    PackedMatrix weight;
    ref::Kernel kernel;  // the same, as the matrix holds it
    std::vector<float> alpha;
    Tensor placed_alpha;
    int64_t look_back() const { return (geometry.taps - 1) * geometry.dilation; }
    TensorView snake() const { return alpha.empty() ? TensorView() : placed_alpha.view(); }
  };

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
    layer.alpha = random_values(g.inputs, 13);
    for (float& a : layer.alpha) a = std::abs(a) + 0.1f;
    layer.placed_alpha = put(layer.alpha, {g.inputs});
    return layer;
  }

  // One call for several sequences: xs[s] are the new rows, histories[s] is read and replaced.
  Rows run(const Layer& layer, const Rows& xs, Rows& histories, int64_t history_offset = kAligned,
           int64_t rate = 1, const Epilogue& epilogue = {}) {
    const Geometry g = layer.geometry;
    const Sequences s = place(xs, histories, g.inputs, layer.look_back(), history_offset, rate);
    const Tensor y = garbage({s.host_offsets.back(), g.outputs});
    causal_conv1d(ctx(), {s.x, s.rows(), s.history(), layer.snake()}, layer.weight, g.dilation, y, epilogue);
    take(s, histories);
    return apart(s, get(y), g.outputs);
  }
  std::vector<float> run_alone(const Layer& layer, const std::vector<float>& x,
                               const Epilogue& epilogue = {}) {
    Rows histories;
    return run(layer, {x}, histories, kAligned, 1, epilogue)[0];
  }
  // convolve(y, epilogue) writes and adds `plain` to rows of y that lie apart, and touches nothing else.
  template <typename Convolve>
  void expect_strided(int64_t outputs, const std::vector<float>& plain, Convolve convolve) {
    const int64_t rows = std::ssize(plain) / outputs, width = outputs + 7;
    for (const bool accumulate : {false, true}) {
      const std::vector<float> before = random_values(rows * width, 5);
      std::vector<float> want = before;
      for (int64_t i = 0; i < rows * outputs; ++i) {
        float& to = want[static_cast<size_t>(i / outputs * width + 3 + i % outputs)];
        to = (accumulate ? to : 0.0f) + plain[static_cast<size_t>(i)];
      }
      const Tensor y = put(before, {rows, width});
      convolve(y.view().columns(3, 3 + outputs), Epilogue{.accumulate = accumulate});
      expect_same_bits(get(y), want);
    }
  }

  static ref::Values expected(const Layer& layer, const ref::Values& in) {
    return ref::causal_conv1d(in, layer.kernel, 1, layer.geometry.dilation);
  }
  static ref::Kernel magnitudes_of(const ref::Kernel& kernel) {
    return {magnitudes(kernel.weight), magnitudes(kernel.bias), kernel.first, kernel.second, kernel.size};
  }
  static ref::Values bound(const Layer& layer, const ref::Values& in) {
    const Geometry g = layer.geometry;
    return bound_of(ref::causal_conv1d(magnitudes(in), magnitudes_of(layer.kernel), 1, g.dilation), g.inputs,
                    g.taps);
  }
};

}  // namespace shoal::ops
