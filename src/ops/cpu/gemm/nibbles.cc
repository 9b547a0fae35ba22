#include "ops/cpu/gemm/nibbles.h"

#include <limits>

namespace shoal::ops::cpu {
namespace {

// Sums are kept in eight lanes, so that the compiler uses vectors: g++ keeps arrays of floats in memory.
typedef float NibbleLanes __attribute__((vector_size(16)));
constexpr int kLanesOfOne = 4, kLanesOfSum = 2 * kLanesOfOne;
constexpr float kShares[] = {1.0f, 0.88f, 0.76f};  // of the range that a search begins with
constexpr int kTurns = 3;
constexpr float kLeastRange = 0x1p-100f;  // below it 1 / scale might not be finite

// What rounding a group leaves, and what a regression of it on the integers needs: sums over the group.
struct Rest {
  float square, rest, integer, integer_square, integer_rest;
};

class RestSums {
 public:
  explicit RestSums(const NibbleRounding& rounding) : rounding_(rounding) {}

  void take(const float* weights, int half) {
    NibbleLanes weight;
    __builtin_memcpy(&weight, weights, sizeof weight);
    const NibbleLanes off = weight - rounding_.minimum();
    const NibbleLanes integer = rounding_.integer_of_difference(off);
    const NibbleLanes left = off - rounding_.scale() * integer;
    square_[half] += left * left;
    rest_[half] += left;
    integer_[half] += integer;
    integer_square_[half] += integer * integer;
    integer_rest_[half] += integer * left;
  }
  // Lanes behind the first `count` of four are left out.
  void take_few(const float* weights, int half, int count) {
    RestSums all = *this;
    float padded[kLanesOfOne] = {};
    for (int i = 0; i < count; ++i) padded[i] = weights[i];
    all.take(padded, half);
    for (int i = 0; i < count; ++i) {
      square_[half][i] = all.square_[half][i];
      rest_[half][i] = all.rest_[half][i];
      integer_[half][i] = all.integer_[half][i];
      integer_square_[half][i] = all.integer_square_[half][i];
      integer_rest_[half][i] = all.integer_rest_[half][i];
    }
  }
  Rest rest() const {
    return {sum_of(square_), sum_of(rest_), sum_of(integer_), sum_of(integer_square_), sum_of(integer_rest_)};
  }

 private:
  using Sum = NibbleLanes[2];
  static float sum_of(const Sum& lanes) {
    float sum = 0;
    for (const NibbleLanes& half : lanes)
      for (int lane = 0; lane < kLanesOfOne; ++lane) sum += half[lane];
    return sum;
  }

  NibbleRounding rounding_;
  Sum square_ = {}, rest_ = {}, integer_ = {}, integer_square_ = {}, integer_rest_ = {};
};

Rest rest_of(const float* weights, int count, const NibbleRounding& rounding) {
  RestSums sums(rounding);
  int i = 0;
  for (; i + kLanesOfSum <= count; i += kLanesOfSum)
    sums.take(weights + i, 0), sums.take(weights + i + kLanesOfOne, 1);
  for (int half = 0; i < count; i += kLanesOfOne, ++half)
    sums.take_few(weights + i, half, count - i < kLanesOfOne ? count - i : kLanesOfOne);
  return sums.rest();
}

// The best found so far.
class NibbleSearch {
 public:
  NibbleSearch(const float* weights, int count, NibbleScale first)
      : weights_(weights), count_(count), best_(first) {}

  void begin_at(float scale, float minimum) {
    for (int turn = 0; turn < kTurns; ++turn) {
      const NibbleScale tried{float_to_bf16(scale), float_to_bf16(minimum)};
      const NibbleRounding rounding(tried);
      const Rest rest = rest_of(weights_, count_, rounding);
      if (rest.square < least_) least_ = rest.square, best_ = tried;
      const auto count = static_cast<float>(count_);
      const float spread = count * rest.integer_square - rest.integer * rest.integer;
      if (!(spread > 0)) return;
      const float slope = (count * rest.integer_rest - rest.integer * rest.rest) / spread;
      scale = rounding.scale() + slope;
      minimum = rounding.minimum() + (rest.rest - slope * rest.integer) / count;
      if (!(scale > 0)) return;
    }
  }
  NibbleScale best() const { return best_; }

 private:
  const float* weights_;
  int count_;
  float least_ = std::numeric_limits<float>::infinity();
  NibbleScale best_;
};

}  // namespace

NibbleScale find_nibble_scale(const float* weights, int count) {
  float lowest = weights[0], highest = weights[0], zero = 0;
  for (int i = 0; i < count; ++i) {
    lowest = weights[i] < lowest ? weights[i] : lowest;
    highest = weights[i] > highest ? weights[i] : highest;
    zero += weights[i] * 0.0f;
  }
  const float range = highest - lowest;
  if (!(zero == 0 && range <= std::numeric_limits<float>::max())) {
    constexpr Bf16 kNan = 0x7fc0;
    return {kNan, kNan};
  }
  if (range < kLeastRange) return {0, float_to_bf16(lowest)};
  NibbleSearch search(weights, count, {float_to_bf16(range / kMostNibble), float_to_bf16(lowest)});
  for (const float share : kShares)
    search.begin_at(range * share / kMostNibble, lowest + range * (1 - share) / 2);
  return search.best();
}

}  // namespace shoal::ops::cpu
