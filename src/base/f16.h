// IEEE half precision <-> float, round to nearest even. A value is its 16 bits.
#pragma once

#include <bit>
#include <cstdint>

namespace shoal {

using F16 = uint16_t;  // the bits

// Beyond 65504 infinity; below 2^-14 denormals; a NaN stays one.
constexpr F16 float_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint32_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<F16>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<F16>(sign | 0x7c00u);  // rounds to 65536 or more
  if (magnitude < 0x38800000u) {
    // A denormal is a multiple of 2^-24: adding 1/2 leaves it, rounded, in the lowest bits of the sum.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<F16>(sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f)));
  }
  const uint32_t rebiased = magnitude - ((127u - 15u) << 23);
  return static_cast<F16>(sign | ((rebiased + 0xfffu + (rebiased >> 13 & 1u)) >> 13));
}

// Selects by masks, because a branch (and ?: becomes one) prevents vectorisation; without denormal
// intermediate floats, so exact also in threads that flush those to zero.
constexpr float f16_to_float(F16 half) {
  constexpr uint32_t kRebias = (127u - 15u) << 23;
  const uint32_t magnitude = half & 0x7fffu;
  const uint32_t is_special = 0u - uint32_t{magnitude >= 0x7c00u};  // infinity, NaN: exponent 31 -> 255
  const uint32_t is_denormal = 0u - uint32_t{magnitude < 0x0400u};
  const uint32_t normal = (magnitude << 13) + kRebias + (is_special & kRebias);
  const uint32_t denormal =
      std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  const uint32_t bits = (normal & ~is_denormal) | (denormal & is_denormal);
  return std::bit_cast<float>(bits | (half & 0x8000u) << 16);
}

}  // namespace shoal
