// The draw of one row (sample.h), step by step for whoever holds its entries: the threads of a block, or a
// test.
//
// Scores do not depend on which entries are kept, so the race is run among all of them at once, and only its
// winner is asked whether the top-p and top-k rule keeps it: the weights of what ranks before it, and its
// own, are summed. When it is not kept, nothing that ranks behind it is, and the race starts again among
// those before it: with top_p 0.8 about one draw in five needs a second race, and every further race has half
// of the weight at most half of the time. No sorting, no histogram, and no rank is ever known but the
// winner's.
//
// Values are the CPU's (cpu/simd/vector_math.h, cpu/sampling/vector_search.h), operation by operation: files
// that include this are compiled with --fmad=false. Weights are counted in units of 2^-35 as integers, so
// sums have no order.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <limits>

#include "ops/cuda/rows/vector_math.cuh"
#include "ops/draw.h"
#include "ops/sampling_noise.h"

namespace shoal::ops::cuda {

constexpr float kNegativeInfinity = -std::numeric_limits<float>::infinity();
constexpr int32_t kNoEntry = std::numeric_limits<int32_t>::max();

constexpr float kLeastTemperature = 1e-5f;  // dual_ar/MODEL.md 5

// SampleRow (sample.h), without what has been done to the logits by then.
struct DrawSettings {
  NoiseStream noise;
  float temperature, top_p;
  int32_t top_k;

  __host__ __device__ bool keeps_one() const { return top_p <= 0.0f || top_k == 1; }
  __host__ __device__ bool keeps_all() const { return top_p >= 1.0f && top_k <= 0; }
  __host__ __device__ float divisor() const {
    return temperature < kLeastTemperature ? kLeastTemperature : temperature;
  }
};

// Rises with the value; the same for both zeros. NaN is above everything.
__host__ __device__ inline uint32_t ordered(float x) {
  if (x != x) return 0xffffffffu;
  const uint32_t bits = std::bit_cast<uint32_t>(x + 0.0f);  // -0 + 0 = 0
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
__host__ __device__ inline float value_of(uint32_t key) {
  return std::bit_cast<float>((key >> 31) != 0 ? key & 0x7fffffffu : ~key);
}
// A largest value from which nothing can be drawn: NaN, or an infinity.
__host__ __device__ inline bool is_hopeless(uint32_t key) {
  return key >= ordered(std::numeric_limits<float>::infinity()) || key <= ordered(kNegativeInfinity);
}

// exp(distance) in units of 2^-35, to the nearest. distance <= 0.
__host__ __device__ inline uint64_t weight_units(float distance) {
  if (!(distance > -25.0f)) return 0;  // e^-25 < 2^-36
  const float e = exp_nonpositive(distance);
  const bool small = e < 0x1p-12f;  // adding 2^-12, a unit of whose last place is 2^-35, rounds it
  const uint32_t bits = std::bit_cast<uint32_t>(small ? e + 0x1p-12f : e);
  const uint64_t mantissa = (bits & 0x007fffffu) | 0x00800000u;
  return (mantissa << ((bits >> 23) - 115u)) - (small ? 0x00800000u : 0u);
}

// A place in the ranking: larger values first, then lower ids.
struct Rank {
  float x;
  int32_t id;
  __host__ __device__ bool is_behind(float other, int32_t other_id) const {
    return other > x || (other == x && other_id < id);
  }
  // Behind everything but -inf.
  __host__ __device__ static Rank last() { return {kNegativeInfinity, 0}; }
};

struct Leader {
  uint32_t score = 0;  // bits of a float >= 0, which order as it does
  int32_t id = kNoEntry;
  float x = 0;

  __host__ __device__ void meet(const Leader& other) {
    if (other.score > score || (other.score == score && other.id < id)) *this = other;
  }
};

struct RankedWeight {
  uint64_t weight = 0;
  uint32_t count = 0;
};

// How much may be kept.
struct KeepLimits {
  uint64_t weight;
  uint32_t count;

  __host__ __device__ KeepLimits(const DrawSettings& settings, uint64_t total)
      : weight(settings.top_p >= 1.0f
                   ? std::numeric_limits<uint64_t>::max()
                   : static_cast<uint64_t>(static_cast<double>(settings.top_p) * static_cast<double>(total))),
        count(settings.top_k > 0 ? static_cast<uint32_t>(settings.top_k)
                                 : std::numeric_limits<uint32_t>::max()) {}
  // ranked: of an entry and those before it.
  __host__ __device__ bool allow(const RankedWeight& ranked) const {
    return ranked.count == 1 || (ranked.weight <= weight && ranked.count <= count);
  }
};

// The noise of the four entries of a block of the generator.
struct QuadNoise {
  float of[4];
};
__host__ __device__ inline QuadNoise noise_of_quad(const NoiseStream& stream, int32_t quad) {
  const PhiloxBlock words =
      philox4x32(stream.seed, {static_cast<uint32_t>(quad), stream.codebook, stream.frame, 0});
  QuadNoise noise;
  for (int i = 0; i < 4; ++i) noise.of[i] = negative_log(uniform_open(words[static_cast<size_t>(i)]));
  return noise;
}

// The race among these. noise_of: of a stream, for these four.
template <typename NoiseOf>
__host__ __device__ inline void race_quad(const float (&x)[4], int32_t quad, const DrawSettings& settings,
                                          float max, const Rank& end, const NoiseOf& noise_of,
                                          Leader& leader) {
  // The noise lies between 2^-25 and 16.7, so the largest logit's score is at least 1/16.7, and what has less
  // than 2^-25 / 16.7 > e^-20.2 of its weight can never beat it.
  constexpr float kHopelessDistance = -21.0f;
  const float divisor = settings.divisor(), hopeless = kHopelessDistance * divisor;
  bool runs[4];
  bool any = false;
  for (int i = 0; i < 4; ++i) {
    runs[i] = !(x[i] - max < hopeless) && end.is_behind(x[i], 4 * quad + i);
    any = any || runs[i];
  }
  if (!any) return;
  const QuadNoise noise = noise_of(settings.noise);
  for (int i = 0; i < 4; ++i) {
    const float weight = exp_nonpositive((x[i] - max) / divisor);
    const float score = weight / noise.of[i];
    if (runs[i]) leader.meet({std::bit_cast<uint32_t>(score), 4 * quad + i, x[i]});
  }
}

// The first of the largest.
__host__ __device__ inline void lead_quad(const float (&x)[4], int32_t quad, float max, Leader& leader) {
  for (int i = 0; i < 4; ++i)
    if (x[i] == max) leader.meet({1, 4 * quad + i, x[i]});
}

__host__ __device__ inline uint64_t weigh_quad(const float (&x)[4], float max) {
  uint64_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += weight_units(x[i] - max);
  return sum;
}

// Adds what ranks not behind the leader.
__host__ __device__ inline void rank_quad(const float (&x)[4], int32_t quad, float max, const Leader& leader,
                                          RankedWeight& ranked) {
  const Rank behind{leader.x, leader.id + 1};
  for (int i = 0; i < 4; ++i) {
    if (!behind.is_behind(x[i], 4 * quad + i)) continue;
    ranked.weight += weight_units(x[i] - max);
    ++ranked.count;
  }
}

// What is known of a row when a draw starts. total: weight of all entries; 0: not yet known.
struct RowState {
  float max;
  uint64_t total = 0;
};

// The race up to its first winner. entries.each(body) calls body(quad, x, noise_of) for the quads of the
// caller, noise_of(stream) being theirs of a stream; team makes one result of those of all callers.
template <typename Team, typename Entries>
__host__ __device__ Leader run_race(Team& team, const Entries& entries, const DrawSettings& settings,
                                    const Rank& end, RowState& row) {
  Leader leader;
  const bool one = settings.keeps_one(), weigh = !one && !settings.keeps_all() && row.total == 0;
  uint64_t weight = 0;
  entries.each([&](int32_t quad, const float(&x)[4], const auto& noise_of) {
    if (one) return lead_quad(x, quad, row.max, leader);
    if (weigh) weight += weigh_quad(x, row.max);
    race_quad(x, quad, settings, row.max, end, noise_of, leader);
  });
  leader = team.lead(leader, weight);
  if (weigh) row.total = weight;
  return leader;
}

// Whether the rule keeps the winner.
template <typename Team, typename Entries>
__host__ __device__ bool keeps(Team& team, const Entries& entries, const DrawSettings& settings,
                               const Leader& leader, const RowState& row) {
  if (settings.keeps_one() || settings.keeps_all()) return true;
  RankedWeight ranked;
  entries.each(
      [&](int32_t quad, const float(&x)[4], const auto&) { rank_quad(x, quad, row.max, leader, ranked); });
  return KeepLimits(settings, row.total).allow(team.sum(ranked));
}

// The entry drawn, or kNoEntry. leader: the winner of the first race, when it has been run. redraw(entry,
// settings): whether the entry is to be drawn anew, with settings that it changes; asked once.
template <typename Team, typename Entries, typename Redraw>
__host__ __device__ int32_t draw_entry(Team& team, const Entries& entries, DrawSettings settings,
                                       Leader leader, RowState row, Redraw redraw) {
  Rank end = Rank::last();
  bool redrawn = false;
  while (true) {
    if (leader.id == kNoEntry) leader = run_race(team, entries, settings, end, row);
    if (leader.id == kNoEntry) return kNoEntry;
    if (keeps(team, entries, settings, leader, row)) {
      if (redrawn || !redraw(leader.id, settings)) return leader.id;
      redrawn = true;
      end = Rank::last();
    } else {
      end = {leader.x, leader.id};
    }
    leader = Leader();
  }
}

}  // namespace shoal::ops::cuda
