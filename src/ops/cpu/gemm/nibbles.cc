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

// A group; importance is null where every weight counts the same.
struct NibbleGroup {
  const float *weights, *importance;
  int count;
};

// What rounding a group leaves, and what a regression of it on the integers needs: sums over the group.
struct Rest {
  float square, rest, integer, integer_square, integer_rest;
};

template <bool kImportance>
class RestSums {
 public:
  explicit RestSums(const NibbleRounding& rounding) : rounding_(rounding) {}

  void take(const float* weights, const float* importance, int half) {
    NibbleLanes weight;
    __builtin_memcpy(&weight, weights, sizeof weight);
    const NibbleLanes off = weight - rounding_.minimum();
    const NibbleLanes integer = rounding_.integer_of_difference(off);
    const NibbleLanes left = off - rounding_.scale() * integer;
    NibbleLanes counted_left = left, counted_integer = integer;
    if constexpr (kImportance) {
      NibbleLanes counts;
      __builtin_memcpy(&counts, importance, sizeof counts);
      counted_left *= counts, counted_integer *= counts;
    }
    square_[half] += counted_left * left;
    rest_[half] += counted_left;
    integer_[half] += counted_integer;
    integer_square_[half] += counted_integer * integer;
    integer_rest_[half] += counted_integer * left;
  }
  // Lanes behind the first `count` of four are left out.
  void take_few(const float* weights, const float* importance, int half, int count) {
    RestSums all = *this;
    float padded[kLanesOfOne] = {}, padded_importance[kLanesOfOne] = {};
    for (int i = 0; i < count; ++i) padded[i] = weights[i];
    for (int i = 0; kImportance && i < count; ++i) padded_importance[i] = importance[i];
    all.take(padded, padded_importance, half);
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

template <bool kImportance>
Rest rest_of(const NibbleGroup& group, const NibbleRounding& rounding) {
  RestSums<kImportance> sums(rounding);
  const auto importance = [&](int i) { return kImportance ? group.importance + i : nullptr; };
  int i = 0;
  for (; i + kLanesOfSum <= group.count; i += kLanesOfSum)
    for (int half = 0; half < 2; ++half)
      sums.take(group.weights + i + half * kLanesOfOne, importance(i + half * kLanesOfOne), half);
  for (int half = 0; i < group.count; i += kLanesOfOne, ++half)
    sums.take_few(group.weights + i, importance(i), half,
                  group.count - i < kLanesOfOne ? group.count - i : kLanesOfOne);
  return sums.rest();
}

// The best found so far.
class NibbleSearch {
 public:
  NibbleSearch(const NibbleGroup& group, NibbleScale first)
      : group_(group), total_(static_cast<float>(group.count)), best_(first) {
    if (!group.importance) return;
    double total = 0;
    for (int i = 0; i < group.count; ++i) total += double{group.importance[i]};
    total_ = static_cast<float>(total);
  }

  void begin_at(float scale, float minimum) {
    for (int turn = 0; turn < kTurns; ++turn) {
      const NibbleScale tried{float_to_bf16(scale), float_to_bf16(minimum)};
      const NibbleRounding rounding(tried);
      const Rest rest =
          group_.importance ? rest_of<true>(group_, rounding) : rest_of<false>(group_, rounding);
      if (rest.square < least_) least_ = rest.square, best_ = tried;
      const float spread = total_ * rest.integer_square - rest.integer * rest.integer;
      if (!(spread > 0)) return;
      const float slope = (total_ * rest.integer_rest - rest.integer * rest.rest) / spread;
      scale = rounding.scale() + slope;
      minimum = rounding.minimum() + (rest.rest - slope * rest.integer) / total_;
      if (!(scale > 0)) return;
    }
  }
  NibbleScale best() const { return best_; }

 private:
  NibbleGroup group_;
  float total_;  // importance
  float least_ = std::numeric_limits<float>::infinity();
  NibbleScale best_;
};

NibbleScale find_in(const NibbleGroup& group) {
  const float* weights = group.weights;
  const int count = group.count;
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
  NibbleSearch search(group, {float_to_bf16(range / kMostNibble), float_to_bf16(lowest)});
  for (const float share : kShares)
    search.begin_at(range * share / kMostNibble, lowest + range * (1 - share) / 2);
  return search.best();
}

}  // namespace

NibbleScale find_nibble_scale(const float* weights, int count) { return find_in({weights, nullptr, count}); }

NibbleScale find_nibble_scale(const float* weights, const float* importance, int count) {
  return find_in({weights, importance, count});
}

}  // namespace shoal::ops::cpu
