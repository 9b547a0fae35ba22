// The harmonic source, 16 samples per vector. ops/harmonic_source.h defines its noise.
#pragma once

#include "ops/cpu/sequence/sequence_math.h"
#include "ops/cpu/simd/vector_noise.h"

namespace shoal::ops::cpu {

template <typename V>
struct Source {
  using Words = typename V::Words;
  static constexpr int kVectors = kSourceBlock / 16;

  static void block(const SourceBlock& b) {
    V sum[kVectors];
    for (int i = 0; i < kVectors; ++i) sum[i] = V::zero();
    for (int h = 0; h < b.harmonics; ++h) {
      V noise[kVectors];
      if (b.noise)
        for (int i = 0; i < kVectors; ++i) noise[i] = V::load(b.noise + h * kSourceBlock + 16 * i);
      else
        draw(b, h, noise);
      const auto* phases = reinterpret_cast<const int32_t*>(b.phases) + h * kSourceBlock;
      for (int i = 0; i < kVectors; ++i) {
        const V turn = uniform_open(Words::upper_bits(Words::load(phases + 16 * i)));
        const V level = V::load(b.levels + 16 * i), amplitude = V::load(b.amplitudes + 16 * i);
        const V value = V::fma(level, noise[i], amplitude * sine_of_turn(turn));
        sum[i] = V::fma(V::all(b.weights[h]), value, sum[i]);
      }
    }
    for (int i = 0; i < kVectors; ++i) cpu::tanh(sum[i] + V::all(b.bias)).store(b.out + 16 * i);
  }

 private:
  // Box and Muller: two words make two normal numbers.
  static void draw(const SourceBlock& b, int harmonic, V (&noise)[kVectors]) {
    constexpr int32_t kLanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    Words words[4] = {Words::load(kLanes) + Words::all(16 * b.block),
                      Words::all(static_cast<uint32_t>(harmonic)), Words::all(0),
                      Words::all(kSourceNoiseStream)};
    philox<V>(b.seed, words);
    for (int pair = 0; pair < kVectors; pair += 2) {
      const V u = uniform_open(Words::upper_bits(words[pair]));
      const V turn = uniform_open(Words::upper_bits(words[pair + 1]));
      const V radius = V::sqrt(V::all(2.0f) * negative_log(u));
      noise[pair] = radius * cosine_of_turn(turn);
      noise[pair + 1] = radius * sine_of_turn(turn);
    }
  }
};

}  // namespace shoal::ops::cpu
