// The recurrence of an LSTM of 256 units by clusters of eight blocks: each keeps the weights of 32 units in
// its registers through all steps (128 per thread), and passes its hidden values to the others through
// distributed shared memory. A step reads only the products with the inputs from memory.
//
// A unit has eight lanes, of which lane j sends its hidden value to block j, which counts the received bytes
// (an mbarrier for each of two buffers). A block that has received all values of a step knows that every warp
// of the cluster has read those of the step before, so two buffers are enough and no other barrier is needed.
#include <algorithm>

#include "ops/cuda/ptx/mbarrier.cuh"
#include "ops/cuda/ptx/shared_address.cuh"
#include "ops/cuda/sequence/lstm_step.cuh"

namespace shoal::ops::cuda {
namespace {

constexpr int kBlocks = kClusterHidden / kTeamUnits;  // of a cluster
static_assert(kBlocks == kSlices, "a lane of a unit for each block");
constexpr int kMostStates = 4;
static_assert(kMostStates * kClusterHidden / 4 <= kTeamThreads, "a thread for each float4 of a turn");

#if __CUDA_ARCH__ >= 900

constexpr int kDepthSteps = kClusterHidden / kStepDepth;

#endif

// Grid: sets, directions within, blocks of a cluster within.
template <int kStates>
__global__ void __launch_bounds__(kTeamThreads, 1) lstm_cluster_kernel(const LstmArguments a) {
#if __CUDA_ARCH__ >= 900
  __shared__ float4 hidden[2][kStates][kClusterHidden / 4];
  __shared__ uint64_t barriers[2];
  __shared__ LstmSet<kStates> set;
  const int thread = static_cast<int>(threadIdx.x), rank = static_cast<int>(blockIdx.x) % kBlocks;
  const int direction = static_cast<int>(blockIdx.x) / kBlocks % 2;
  const LstmLane lane(thread);
  const int unit = rank * kTeamUnits + lane.unit;

  float4 weights[kDepthSteps][4];
#pragma unroll
  for (int i = 0; i < kDepthSteps; ++i)
#pragma unroll
    for (int gate = 0; gate < 4; ++gate)
      weights[i][gate] = __ldg(a.recurrent + a.layout.four(direction, rank, i, gate, thread));

  if (thread < 2) init_barrier(shared_address(&barriers[thread]), 1);
  if (thread < kStates * kClusterHidden / 4)
    hidden[0][thread / (kClusterHidden / 4)][thread % (kClusterHidden / 4)] = float4{};
  wait_for_inputs();
  set.take(a.segments, static_cast<int>(blockIdx.x) / (2 * kBlocks), a.sets);
  clear_gaps(a);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  synchronize_cluster();

  // The position of this lane's unit in the block that the lane sends to.
  constexpr uint32_t kStateBytes = kClusterHidden * sizeof(float), kTurnBytes = kStates * kStateBytes;
  const uint32_t target = address_in(shared_address(hidden) + static_cast<uint32_t>(unit * sizeof(float)),
                                     static_cast<uint32_t>(lane.slice));
  const uint32_t own_barriers = shared_address(barriers),
                 target_barriers = address_in(own_barriers, static_cast<uint32_t>(lane.slice));

  float cells[kStates] = {}, next[kStates];
  const auto load_products = [&](int step) {
#pragma unroll
    for (int state = 0; state < kStates; ++state)
      next[state] = set.length[state] > step
                        ? *a.product(set.row(state, step, direction), direction, lane.gate(), unit)
                        : 0.0f;
  };
  load_products(0);
  const int steps = set.length[0];
  for (int step = 0; step < steps; ++step) {
    const int turn = step & 1;
    const int active = set.active(step), going_on = set.active(step + 1);
    if (thread == 0 && going_on > 0)
      arrive_expecting(own_barriers + 8 * (turn ^ 1), static_cast<uint32_t>(going_on) * kStateBytes);
    float products[kStates];
#pragma unroll
    for (int state = 0; state < kStates; ++state) products[state] = next[state];
    load_products(step + 1);
    if (step > 0) wait_for_phase</*kSent=*/true>(own_barriers + 8 * turn, (step - 1) >> 1 & 1);

    float sums[kStates][4] = {};
#pragma unroll
    for (int state = 0; state < kStates; ++state) {
      if (state >= active) break;
#pragma unroll
      for (int i = 0; i < kDepthSteps; ++i) {
        const float4 h = hidden[turn][state][i * kSlices + lane.slice];
#pragma unroll
        for (int gate = 0; gate < 4; ++gate) accumulate(weights[i][gate], h, sums[state][gate]);
      }
    }
    float values[kStates];
#pragma unroll
    for (int state = 0; state < kStates; ++state)
      values[state] =
          hidden_of(sum_of_gate(sums[state], lane.slice) + products[state], lane.slice, cells[state]);
#pragma unroll
    for (int state = 0; state < kStates; ++state) {
      if (state < going_on)
        send_to_cluster(target + static_cast<uint32_t>(turn ^ 1) * kTurnBytes +
                            static_cast<uint32_t>(state) * kStateBytes,
                        values[state], target_barriers + 8 * static_cast<uint32_t>(turn ^ 1));
      if (state < active && lane.slice == 0)
        *a.result(set.row(state, step, direction), direction, unit) = values[state];
    }
  }
  synchronize_cluster();  // a block's shared memory lives until all that was sent to it has come
#endif
}

}  // namespace

bool has_cluster_lstm(const Context& ctx, int64_t hidden) {
  return hidden == kClusterHidden && state_of(ctx).architecture() >= 90;
}

void run_cluster_lstm(Context& ctx, LstmArguments arguments) {
  const int count = arguments.segments.count;
  // Segments of a set share the latency of a step, but not its multiplications: a set has as few segments as
  // let all sets run at once.
  const int together = std::max(1, state_of(ctx).multiprocessors() / (2 * kBlocks));
  int states = 1;
  while (states < kMostStates && (count + states - 1) / states > together) states *= 2;
  arguments.sets = (count + states - 1) / states;
  const Grid grid{.blocks = dim3(static_cast<unsigned>(arguments.sets * 2 * kBlocks)),
                  .threads = dim3(kTeamThreads),
                  .cluster = kBlocks};
  launch(ctx, "lstm", grid,
         states == 1   ? lstm_cluster_kernel<1>
         : states == 2 ? lstm_cluster_kernel<2>
                       : lstm_cluster_kernel<kMostStates>,
         arguments);
}

}  // namespace shoal::ops::cuda
