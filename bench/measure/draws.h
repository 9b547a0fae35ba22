// Random choices of a load, each a pure function of its seed and place, so that a run can be repeated.
#pragma once

#include <cstdint>

namespace shoal::bench {

// The kinds of random choices: they are independent of each other.
enum class Draw : uint32_t {
  arrival,
  sentence,
  person,
  place,
  frames,
  voice,
  voice_frame,
  seed,
  sample,
  length,
  word,
  leave,
  leave_after,
  slow_reader,
  clip
};

// 64 uniform bits.
uint64_t draw_bits(uint64_t seed, uint64_t index, Draw kind);
// Uniform in (0, 1).
double draw_unit(uint64_t seed, uint64_t index, Draw kind);
// Uniform in [0, bound) except for a bias below bound / 2^64; bound > 0.
uint64_t draw_below(uint64_t bound, uint64_t seed, uint64_t index, Draw kind);

// Seconds between arrivals `index` and `index` + 1 of a Poisson process: exponential with mean 1 /
// rate_per_s.
double arrival_gap_s(double rate_per_s, uint64_t seed, uint64_t index);

}  // namespace shoal::bench
