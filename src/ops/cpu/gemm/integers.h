// Values as 8-bit integers times a scale: the largest of those that share it becomes 127, the others the
// nearest integer (symmetric, round to nearest even). Compiled for the baseline: the same bits everywhere.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace shoal::ops::cpu {

// Finds the scale of many values, which come in pieces.
class IntegerScale {
 public:
  void add(const float* values, int count) {
    const int whole = count / kLanes * kLanes;
    for (int i = 0; i < whole; i += kLanes)
      for (int lane = 0; lane < kLanes; ++lane) take(values[i + lane], lane);
    for (int i = whole; i < count; ++i) take(values[i], i - whole);
  }

  // NaN if a value was not finite, so that what is computed with it shows it.
  // most: what the largest becomes.
  float scale(float most = kMost) const { return largest() / most + not_finite(); }
  // What values are multiplied by before they become integers. 0 if all are.
  float factor(float most = kMost) const { return largest() > 0 ? most / largest() : 0; }

 private:
  static constexpr int kLanes = 16;  // apart, so that the compiler may use vectors
  static constexpr float kMost = 127;

  void take(float value, int lane) {
    const float magnitude = std::abs(value);
    largest_[lane] = magnitude > largest_[lane] ? magnitude : largest_[lane];
    zero_[lane] += value * 0.0f;
  }
  float largest() const {
    float largest = 0;
    for (const float lane : largest_) largest = lane > largest ? lane : largest;
    return largest;
  }
  float not_finite() const {
    float sum = 0;
    for (const float lane : zero_) sum += lane;
    return sum;
  }

  float largest_[kLanes] = {}, zero_[kLanes] = {};
};

// |scaled| <= 127.5: the nearest integer, ties to even. Anything else gives some integer.
inline int8_t nearest_int8(float scaled) {
  constexpr float kToInteger = 0x1.8p23f;  // added, it leaves the integer in the low bits
  return static_cast<int8_t>(std::bit_cast<uint32_t>(scaled + kToInteger));
}

}  // namespace shoal::ops::cpu
