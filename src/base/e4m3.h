// OCP 8-bit floating point e4m3 (the variant without infinities, e4m3fn) <-> float, round to nearest even. A
// value is its 8 bits: a sign, four bits of exponent, three of mantissa. (Open Compute Project, OFP8, 2023)
#pragma once

#include <bit>
#include <cstdint>

namespace shoal {

using E4m3 = uint8_t;  // the bits

constexpr float kE4m3Most = 448;
constexpr E4m3 kE4m3Nan = 0x7f;  // with either sign

constexpr bool is_nan_of_e4m3(E4m3 value) { return (value & 0x7f) == kE4m3Nan; }

// Beyond 448 it stays 448; below 2^-6 denormals, in steps of 2^-9; a NaN stays one.
constexpr E4m3 float_to_e4m3(float value) {
  constexpr uint32_t kMost = std::bit_cast<uint32_t>(kE4m3Most), kLeastNormal = (127u - 6u) << 23;
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = bits >> 24 & 0x80u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<E4m3>(sign | kE4m3Nan);
  if (magnitude >= kMost) return static_cast<E4m3>(sign | 0x7eu);
  if (magnitude < kLeastNormal) {
    // 2^14 added leaves the steps, rounded, in the lowest bits of the sum.
    return static_cast<E4m3>(sign |
                             (std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0x1p14f) & 0xfu));
  }
  const uint32_t rebiased = magnitude - ((127u - 7u) << 23);
  return static_cast<E4m3>(sign | ((rebiased + 0x7ffffu + (rebiased >> 20 & 1u)) >> 20));
}

constexpr float e4m3_to_float(E4m3 value) {
  const uint32_t magnitude = value & 0x7fu, sign = (value & 0x80u) << 24;
  if (magnitude == kE4m3Nan) return std::bit_cast<float>(sign | 0x7fc00000u);
  // Without denormal floats: exact also in threads that flush those to zero.
  const float absolute = magnitude < 8 ? static_cast<float>(magnitude) * 0x1p-9f
                                       : std::bit_cast<float>((magnitude << 20) + ((127u - 7u) << 23));
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(absolute));
}

}  // namespace shoal
