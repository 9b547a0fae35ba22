// Shared by the tests of the CUDA convolutions.
#pragma once

#include "ops/conv1d.h"
#include "ops/cuda/device/cuda_testing.h"
#include "ops/cuda/gemm/operands/product_testing.h"

namespace shoal::ops::cuda {

inline std::vector<float> rows_of(const std::vector<float>& x, int64_t width, int64_t begin, int64_t end) {
  return {x.begin() + begin * width, x.begin() + end * width};
}

inline void append(std::vector<float>& all, const std::vector<float>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

using Rows = std::vector<std::vector<float>>;  // per sequence

// Packed sequences with their histories in slots, as the ops take them: in slots of another order than the
// sequences, each history surrounded by values that must not change.
class ConvTest : public CudaTest {
 protected:
  // Where histories begin in their slots: aligned for vectors or not.
  static constexpr int64_t kAligned = 4, kUnaligned = 3;

  struct Sequences {
    std::vector<int32_t> host_offsets;
    Tensor x, offsets, slots, pool;
    int64_t channels = 0, floats = 0, history_offset = 0, rate = 1;

    ConvRows rows() const { return {{host_offsets}, offsets, slots, rate}; }
    ConvHistory history() const { return {floats ? pool.view() : TensorView(), history_offset, {}}; }
  };

  Sequences place(const Rows& xs, Rows& histories, int64_t channels, int64_t look_back,
                  int64_t history_offset = kAligned, int64_t rate = 1) {
    Sequences s;
    s.channels = channels, s.floats = look_back * channels, s.history_offset = history_offset, s.rate = rate;
    histories.resize(xs.size(), std::vector<float>(static_cast<size_t>(s.floats)));
    const auto sequences = static_cast<int64_t>(xs.size());
    const int64_t stride = (history_offset + s.floats + 5) / 4 * 4 + (history_offset == kAligned ? 0 : 1);
    std::vector<float> x, pool(static_cast<size_t>((sequences + 1) * stride), kOther);
    std::vector<int32_t> offsets = {0}, slots;
    s.host_offsets = {0};
    for (int64_t i = 0; i < sequences; ++i) {
      append(x, xs[static_cast<size_t>(i)]);
      s.host_offsets.push_back(static_cast<int32_t>(static_cast<int64_t>(x.size()) / channels));
      offsets.push_back(static_cast<int32_t>(s.host_offsets.back() / rate));
      slots.push_back(static_cast<int32_t>(sequences - i));
      std::ranges::copy(histories[static_cast<size_t>(i)],
                        pool.begin() + (sequences - i) * stride + history_offset);
    }
    s.x = put(x, {s.host_offsets.back(), channels});
    s.offsets = put(offsets, {sequences + 1});
    s.slots = put(slots, {sequences});
    s.pool = put(pool, {sequences + 1, stride});
    return s;
  }

  // Reads the histories back; checks that their surroundings are unchanged.
  void take(const Sequences& s, Rows& histories) {
    std::vector<float> pool = get(s.pool);
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

// What an f32 snake of x may be off by.
inline double snake_bound(double x, double alpha) { return 8 * kUnit * (std::abs(x) + 1.0 / alpha); }
// And one that is rounded to 16 bits next: its sine is 2^-20.5 + 2^-23 |alpha x| off, and counts twice.
inline double near_snake_bound(double x, double alpha) { return 32 * kUnit * (std::abs(x) + 1.0 / alpha); }

inline std::vector<float> random_alphas(int64_t channels, unsigned seed) {
  std::vector<float> alpha = random_values(channels, seed);
  for (float& a : alpha) a = std::abs(a) + 0.1f;
  return alpha;
}

}  // namespace shoal::ops::cuda
