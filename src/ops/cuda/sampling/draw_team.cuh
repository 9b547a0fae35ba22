// The threads of a warp or of a block making one result of all their own.
#pragma once

#include "ops/cuda/sampling/draw_rule.cuh"

namespace shoal::ops::cuda {

constexpr unsigned kWholeWarp = 0xffffffffu;
constexpr int kWarp = 32, kMostWarps = 32;

__device__ inline int lane_index() { return static_cast<int>(threadIdx.x) % kWarp; }
__device__ inline int warp_index() { return static_cast<int>(threadIdx.x) / kWarp; }
__device__ inline int warp_count() { return static_cast<int>(blockDim.x) / kWarp; }

// Sums below 2^58: reductions in hardware add 32 bits, so 26 and the rest.
__device__ inline uint64_t warp_total(uint64_t x) {
  constexpr int kLow = 26;
  const uint32_t low = __reduce_add_sync(kWholeWarp, static_cast<uint32_t>(x) & ((1u << kLow) - 1));
  const uint32_t high = __reduce_add_sync(kWholeWarp, static_cast<uint32_t>(x >> kLow));
  return (uint64_t{high} << kLow) + low;
}

__device__ inline Leader warp_lead(const Leader& own) {
  Leader leader;
  leader.score = __reduce_max_sync(kWholeWarp, own.score);
  const bool leads = own.score == leader.score;
  leader.id = __reduce_min_sync(kWholeWarp, leads ? own.id : kNoEntry);
  const unsigned found = __ballot_sync(kWholeWarp, leads && own.id == leader.id);
  leader.x = __shfl_sync(kWholeWarp, own.x, __ffs(static_cast<int>(found)) - 1);
  return leader;
}

// The threads of a block, all of which must take part in every call, whole warps only. One barrier each:
// results of warps alternate between two sets of places, so that a slow warp still finds those that it has to
// read.
class BlockTeam {
 public:
  struct Places {
    Leader leaders[2][kMostWarps];
    uint64_t sums[2][kMostWarps];
    uint32_t numbers[2][kMostWarps];
  };

  __device__ explicit BlockTeam(Places& places) : places_(places) {}

  __device__ uint32_t greatest(uint32_t key) {
    key = __reduce_max_sync(kWholeWarp, key);
    if (lane_index() == 0) places_.numbers[turn_][warp_index()] = key;
    __syncthreads();
    key = __reduce_max_sync(kWholeWarp, takes_part() ? places_.numbers[turn_][lane_index()] : 0);
    turn_ ^= 1;
    return key;
  }

  // The leader of all, and in `weight` the sum of all.
  __device__ Leader lead(Leader leader, uint64_t& weight) {
    leader = warp_lead(leader);
    weight = warp_total(weight);
    if (lane_index() == 0) {
      places_.leaders[turn_][warp_index()] = leader;
      places_.sums[turn_][warp_index()] = weight;
    }
    __syncthreads();
    leader = warp_lead(takes_part() ? places_.leaders[turn_][lane_index()] : Leader());
    weight = warp_total(takes_part() ? places_.sums[turn_][lane_index()] : 0);
    turn_ ^= 1;
    return leader;
  }

  __device__ RankedWeight sum(RankedWeight ranked) {
    ranked = {warp_total(ranked.weight), __reduce_add_sync(kWholeWarp, ranked.count)};
    if (lane_index() == 0) {
      places_.sums[turn_][warp_index()] = ranked.weight;
      places_.numbers[turn_][warp_index()] = ranked.count;
    }
    __syncthreads();
    ranked.weight = warp_total(takes_part() ? places_.sums[turn_][lane_index()] : 0);
    ranked.count = __reduce_add_sync(kWholeWarp, takes_part() ? places_.numbers[turn_][lane_index()] : 0);
    turn_ ^= 1;
    return ranked;
  }

 private:
  __device__ static bool takes_part() { return lane_index() < warp_count(); }

  Places& places_;
  int turn_ = 0;
};

}  // namespace shoal::ops::cuda
