// Philox4x32-10: a counter-based random generator. A value is a pure function of (key, counter), so the codes
// of a request depend only on its seed and position. Salmon et al., "Parallel random numbers: as easy as 1,
// 2, 3", SC'11.
#pragma once

#include <array>
#include <cstdint>

namespace shoal {

using PhiloxBlock = std::array<uint32_t, 4>;

// Ten rounds. key: the seed. counter: where in the stream. Returns four independent 32-bit words.
constexpr PhiloxBlock philox4x32(uint64_t key, PhiloxBlock counter) {
  constexpr uint32_t kMul0 = 0xD2511F53u, kMul1 = 0xCD9E8D57u;  // multipliers of the paper, table 2
  constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{kMul0} * counter[0], p1 = uint64_t{kMul1} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return counter;
}

// Uniform in (0, 1): 23 bits and a half step, all exact in float, so never 0 and never 1: -log(u) is finite
// and positive.
constexpr float uniform_open(uint32_t word) {
  return (static_cast<float>(word >> 9) + 0.5f) * (1.0f / 8388608.0f);
}

}  // namespace shoal
