// bfloat16 <-> float, round to nearest even. g++ 12 has no __bf16 arithmetic, so a value is its 16 bits.
#pragma once

#include <bit>
#include <cstdint>

namespace shoal {

using Bf16 = uint16_t;  // the bits

constexpr float bf16_to_float(Bf16 bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

constexpr Bf16 float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<Bf16>((bits >> 16) | 0x40u);  // keep a NaN a NaN
  return static_cast<Bf16>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float round_to_bf16(float value) { return bf16_to_float(float_to_bf16(value)); }

}  // namespace shoal
