#include "bench/measure/draws.h"

#include <cmath>

#include "base/philox.h"

namespace shoal::bench {

uint64_t draw_bits(uint64_t seed, uint64_t index, Draw kind) {
  const PhiloxBlock block = philox4x32(
      seed,
      {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), static_cast<uint32_t>(kind), 0});
  return uint64_t{block[1]} << 32 | block[0];
}

double draw_unit(uint64_t seed, uint64_t index, Draw kind) {
  return (static_cast<double>(draw_bits(seed, index, kind) >> 12) + 0.5) * 0x1p-52;
}

uint64_t draw_below(uint64_t bound, uint64_t seed, uint64_t index, Draw kind) {
  return draw_bits(seed, index, kind) % bound;
}

double arrival_gap_s(double rate_per_s, uint64_t seed, uint64_t index) {
  return -std::log(draw_unit(seed, index, Draw::arrival)) / rate_per_s;
}

}  // namespace shoal::bench
