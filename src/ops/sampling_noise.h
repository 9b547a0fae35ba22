// The noise of a draw: Exp(1) variables as pure functions of (seed, frame, codebook, id), the same bits on
// every machine and device: only IEEE f32 operations, without contraction.
#pragma once

#include <bit>
#include <cstdint>

#include "base/philox.h"

namespace shoal::ops {

// -log(u) for a normal u in (0, 1); relative error below 3 ulp.
// u = 2^k m with m in [1/sqrt 2, sqrt 2); log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172.
constexpr float negative_log(float u) {
  const uint32_t bits = std::bit_cast<uint32_t>(u) - 0x3f3504f3u;  // 1/sqrt 2
  const int32_t k = static_cast<int32_t>(bits) >> 23;
  const float m = std::bit_cast<float>((bits & 0x007fffffu) + 0x3f3504f3u);
  const float s = (m - 1.0f) / (m + 1.0f);
  const float z = s * s;
  const float tail = z * (0.66666667f + z * (0.4f + z * (0.28571429f + z * (0.22222222f + z * 0.18181818f))));
  // ln 2 in two parts, the first short enough that k times it is exact
  const float n = static_cast<float>(k);
  return -(n * 0.693145752f + (s * (2.0f + tail) + n * 1.42860677e-6f));
}

// The key of the generator and the upper words of its counter for one draw.
struct NoiseStream {
  uint64_t seed;
  uint32_t frame, codebook;

  friend constexpr bool operator==(const NoiseStream&, const NoiseStream&) = default;
};

// q_i, the noise of one id. Four ids share a block of the generator.
constexpr float exponential_noise(const NoiseStream& stream, uint32_t id) {
  return negative_log(
      uniform_open(philox4x32(stream.seed, {id / 4, stream.codebook, stream.frame, 0})[id % 4]));
}

}  // namespace shoal::ops
