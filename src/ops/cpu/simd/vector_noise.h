// Random words and their logarithms on 16 lanes: base/philox.h and ops/sampling_noise.h, operation by
// operation.
#pragma once

#include "ops/cpu/simd/vector16.h"

namespace shoal::ops::cpu {

// words = philox4x32(key, words), in each lane.
template <typename V>
void philox(uint64_t key, typename V::Words (&words)[4]) {
  using Words = typename V::Words;
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    Words low0, low2;
    const Words high0 = Words::multiply(words[0], 0xD2511F53u, &low0);
    const Words high2 = Words::multiply(words[2], 0xCD9E8D57u, &low2);
    words[0] = high2 ^ words[1] ^ Words::all(k0);
    words[2] = high0 ^ words[3] ^ Words::all(k1);
    words[1] = low2;
    words[3] = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

// uniform_open of the 23 bits that `bits` holds as floats.
template <typename V>
V uniform_open(V bits) {
  return (bits + V::all(0.5f)) * V::all(1.0f / 8388608.0f);
}

template <typename V>
V negative_log(V u) {
  const V one = V::all(1.0f);
  V n;
  const V m = V::split(u, &n);
  const V s = (m - one) / (m + one);
  const V z = s * s;
  V tail = V::all(0.22222222f) + z * V::all(0.18181818f);
  tail = V::all(0.28571429f) + z * tail;
  tail = V::all(0.4f) + z * tail;
  tail = z * (V::all(0.66666667f) + z * tail);
  const V small = s * (V::all(2.0f) + tail) + n * V::all(1.42860677e-6f);
  return V::zero() - (n * V::all(0.693145752f) + small);
}

}  // namespace shoal::ops::cpu
