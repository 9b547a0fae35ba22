// Weights as integers of 0 to 15 times a scale, plus a minimum; both belong to a group of neighbouring inputs
// of an output and are kept in bf16. Compiled for the baseline: the same bits everywhere.
#pragma once

#include <cstdint>

#include "base/bf16.h"

namespace shoal::ops::cpu {

constexpr int kMostInGroup = 128;
constexpr float kMostNibble = 15;

// A weight is minimum + scale * nibble.
struct NibbleScale {
  Bf16 scale = 0, minimum = 0;
};

// Those with the least sum of squared differences that a search finds: from the range of the weights and
// parts of it, each improved in turns of rounding and linear regression. weights: count of 1 to 128. Both are
// NaN if a weight is not finite, so that what is computed with them shows it.
NibbleScale find_nibble_scale(const float* weights, int count);
// The same with the least sum of squared differences, each times its importance (count of them, over 0). If
// all are 1 the bits are those of the search without.
NibbleScale find_nibble_scale(const float* weights, const float* importance, int count);

// The nearest of the 16 values (ties to the even integer).
class NibbleRounding {
 public:
  explicit NibbleRounding(NibbleScale found)
      : scale_(bf16_to_float(found.scale)),
        minimum_(bf16_to_float(found.minimum)),
        factor_(scale_ > 0 ? 1 / scale_ : 0) {}

  // As a float, 0 to 15; 0 for NaN.
  float integer(float weight) const { return integer_of_difference(weight - minimum_); }
  // difference: of a weight and the minimum. V: float, or a vector of them.
  template <typename V>
  V integer_of_difference(V difference) const {
    constexpr float kToInteger = 0x1.8p23f;  // added, it leaves no fraction
    const V zero{}, most = zero + kMostNibble;
    const V scaled = difference * factor_;
    const V low = scaled > zero ? scaled : zero;
    const V clamped = low < most ? low : most;
    return (clamped + kToInteger) - kToInteger;
  }
  uint8_t nibble(float weight) const { return static_cast<uint8_t>(integer(weight)); }
  float value(float integer) const { return minimum_ + scale_ * integer; }
  float scale() const { return scale_; }
  float minimum() const { return minimum_; }

 private:
  float scale_, minimum_, factor_;
};

}  // namespace shoal::ops::cpu
