// The draw: exponential noise for 16 blocks of four ids at once, and the entry that wins the race.
#pragma once

#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cpu/simd/vector_math.h"
#include "ops/cpu/simd/vector_noise.h"

namespace shoal::ops::cpu {

template <typename V>
struct NoiseRace {
  using Words = typename V::Words;

  static int64_t run(const Race& race) {
    Leader leader;
    V reach = V::all(__builtin_inff());
    for (int64_t i = 0; i < race.block_count; i += 16) {
      const int count = static_cast<int>(race.block_count - i < 16 ? race.block_count - i : 16);
      int32_t blocks[16];  // the last ones padded with a repeated block, which cannot beat itself
      for (int lane = 0; lane < 16; ++lane) blocks[lane] = race.blocks[i + (lane < count ? lane : 0)];
      Words words[4] = {Words::load(blocks) + Words::all(race.first_block), Words::all(race.noise.codebook),
                        Words::all(race.noise.frame), Words::all(0)};
      philox<V>(race.noise.seed, words);
      if (V::bits(V::less(least_noise(words), reach)) == 0) continue;
      contest(race, blocks, words, leader);
      if (leader.score > 0) reach = V::all(kReach / leader.score);
    }
    return leader.entry;
  }

 private:
  struct Leader {
    float score = -1;  // below every score
    int64_t entry = 0;
  };

  // A weight is at most 1 and the noise -log(u) at least 1 - u, so entries with 1 - u >= 1 / score are below
  // the leader. Beyond that by more than the rounding error (5e-7) an entry cannot even tie, so most entries
  // of a flat distribution need only the generator.
  static constexpr float kReach = 1.0001f;

  // 1 - u, which is exact, of the largest u of each block.
  static V least_noise(const Words (&words)[4]) {
    V bits[4];
    for (int i = 0; i < 4; ++i) bits[i] = Words::upper_bits(words[i]);
    return V::all(1.0f) - uniform_open(V::max(V::max(bits[0], bits[1]), V::max(bits[2], bits[3])));
  }

  // Puts the entries of 16 blocks against the leader, by rising id.
  static void contest(const Race& race, const int32_t* blocks, const Words (&words)[4], Leader& leader) {
    float scores[4][16];
    uint32_t ahead = 0;  // lanes that hold a better one
    for (int i = 0; i < 4; ++i) {
      float logits[16];
      for (int lane = 0; lane < 16; ++lane) logits[lane] = race.logits[4 * int64_t{blocks[lane]} + i];
      const V x = V::load(logits);
      const V weight = exp_nonpositive((x - V::all(race.max)) / V::all(race.temperature));
      const V score = weight / negative_log(uniform_open(Words::upper_bits(words[i])));
      ahead |= V::bits(V::less(V::all(leader.score), score)) & V::bits(V::at_most(V::all(race.least), x));
      V::select(V::at_most(V::all(race.least), x), score, V::all(-1.0f)).store(scores[i]);
    }
    for (; ahead != 0; ahead &= ahead - 1) {
      const int lane = __builtin_ctz(ahead);
      for (int i = 0; i < 4; ++i)
        if (scores[i][lane] > leader.score) leader = {scores[i][lane], 4 * int64_t{blocks[lane]} + i};
    }
  }
};

}  // namespace shoal::ops::cpu
