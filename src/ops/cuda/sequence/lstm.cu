// Bidirectional LSTMs: the products with the inputs are one matrix product, then one kernel takes all steps.
// This file has the recurrence for any hidden size: a block for each direction and set of segments, whose
// weights come from L2 in every step. lstm_cluster.cu keeps them in registers.
#include <algorithm>

#include "ops/cuda/sequence/lstm_step.cuh"
#include "ops/cuda_backend.h"
#include "ops/linear.h"
#include "ops/transfer.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kStates = 4;     // segments of a set at most
constexpr int kMostTeams = 4;  // of a block

// Hidden values [2 turns, kStates, padded], then cells [kStates, padded].
int64_t shared_floats(const RecurrentLayout& layout) { return 3 * kStates * layout.padded(); }

// The units of one team in a step of all states.
__device__ void step_team(const LstmArguments& a, const LstmSet<kStates>& set, int step, int direction,
                          int team, const float* before, float* after, float* cells) {
  const int thread = static_cast<int>(threadIdx.x) % kTeamThreads;
  const LstmLane lane(thread);
  const int padded = static_cast<int>(a.layout.padded()), unit = team * kTeamUnits + lane.unit;
  float sums[kStates][4] = {};
  for (int i = 0; i < a.layout.steps(); ++i) {
    float4 weights[4];
#pragma unroll
    for (int gate = 0; gate < 4; ++gate)
      weights[gate] = __ldg(a.recurrent + a.layout.four(direction, team, i, gate, thread));
#pragma unroll
    for (int state = 0; state < kStates; ++state) {
      const float4 h =
          *reinterpret_cast<const float4*>(before + state * padded + i * kStepDepth + 4 * lane.slice);
#pragma unroll
      for (int gate = 0; gate < 4; ++gate) accumulate(weights[gate], h, sums[state][gate]);
    }
  }
#pragma unroll
  for (int state = 0; state < kStates; ++state) {
    if (set.length[state] <= step) break;
    const int64_t row = set.row(state, step, direction);
    const bool exists = unit < a.hidden();
    const float product = exists ? *a.product(row, direction, lane.gate(), unit) : 0.0f;
    float cell = exists ? cells[state * padded + unit] : 0.0f;
    const float h = hidden_of(sum_of_gate(sums[state], lane.slice) + product, lane.slice, cell);
    __syncwarp();  // all lanes of the unit have read the cell
    if (!exists || lane.slice != 0) continue;
    cells[state * padded + unit] = cell;
    after[state * padded + unit] = h;
    *a.result(row, direction, unit) = h;
  }
}

// Blocks: sets, directions within.
__global__ void __launch_bounds__(kMostTeams* kTeamThreads) lstm_kernel(const LstmArguments a) {
  extern __shared__ float4 shared[];
  __shared__ LstmSet<kStates> set;
  float* const hidden = reinterpret_cast<float*>(shared);
  wait_for_inputs();
  const int direction = static_cast<int>(blockIdx.x) % 2;
  set.take(a.segments, static_cast<int>(blockIdx.x) / 2, a.sets);
  const int turn = kStates * static_cast<int>(a.layout.padded());
  for (int i = static_cast<int>(threadIdx.x); i < 3 * turn; i += static_cast<int>(blockDim.x))
    hidden[i] = 0.0f;
  clear_gaps(a);
  const int teams = static_cast<int>(blockDim.x) / kTeamThreads;
  const int first = static_cast<int>(threadIdx.x) / kTeamThreads;
  for (int step = 0; step < set.length[0]; ++step) {
    __syncthreads();
    for (int team = first; team < a.layout.teams(); team += teams)
      step_team(a, set, step, direction, team, hidden + step % 2 * turn, hidden + (step + 1) % 2 * turn,
                hidden + 2 * turn);
  }
}

void run_lstm(Context& ctx, LstmArguments arguments) {
  arguments.sets = static_cast<int>(blocks_for(arguments.segments.count, kStates));
  const int64_t bytes = shared_floats(arguments.layout) * static_cast<int64_t>(sizeof(float));
  const int64_t room = state_of(ctx).most_shared_bytes() - static_cast<int64_t>(sizeof(LstmSet<kStates>));
  if (bytes > room)
    fail(ErrorCode::unsupported, "bidirectional_lstm: ", arguments.layout.hidden, " hidden values need ",
         bytes, " bytes of a multiprocessor's shared memory, which has ", room);
  const int64_t teams = std::min<int64_t>(arguments.layout.teams(), kMostTeams);
  const Grid grid{.blocks = dim3(static_cast<unsigned>(2 * arguments.sets)),
                  .threads = dim3(static_cast<unsigned>(teams * kTeamThreads)),
                  .shared_bytes = static_cast<size_t>(bytes)};
  launch(ctx, "lstm", grid, lstm_kernel, arguments);
}

}  // namespace

Tensor pack_recurrent(Context& ctx, const LstmDirection& forward, const LstmDirection& backward, DType) {
  const RecurrentLayout layout{forward.weight_hh.dim(1)};
  Tensor packed = Tensor::zeros(DType::f32, {2, layout.teams(), layout.steps(), 4, kTeamThreads * 4});
  float* const to = packed.as<float>();
  const TensorView weights[2] = {forward.weight_hh, backward.weight_hh};
  for (int64_t direction = 0; direction < 2; ++direction)
    for (int64_t row = 0; row < 4 * layout.hidden; ++row)
      for (int64_t k = 0; k < layout.hidden; ++k) {
        const int64_t gate = row / layout.hidden, unit = row % layout.hidden;
        const auto thread = static_cast<int>(unit % kTeamUnits * kSlices + k % kStepDepth / 4);
        const int64_t four =
            layout.four(direction, unit / kTeamUnits, k / kStepDepth, static_cast<int>(gate), thread);
        to[4 * four + k % 4] = weights[direction].row<float>(row)[k];
      }
  return resident(ctx, std::move(packed));
}

void bidirectional_lstm(Context& ctx, TensorView x, const Segments& segments, const PackedLstm& lstm,
                        TensorView y) {
  if (segments.count() == 0) {
    for (int64_t row = 0; row < y.dim(0); ++row)
      cuda::fill_zero(ctx, TensorView(y.row<float>(row), DType::f32, {y.dim(1)}, y.device()));
    return;
  }
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView products = ctx.workspace->alloc(DType::f32, {x.dim(0), lstm.input.outputs});
  cuda::linear(ctx, x, lstm.input, products, {});
  const LstmArguments arguments{.products = products.as<float>(),
                                .recurrent = static_cast<const float4*>(lstm.recurrent.view().data()),
                                .layout = {lstm.hidden},
                                .segments = segment_rows(segments),
                                .y = y.as<float>(),
                                .y_stride = y.stride(0)};
  if (has_cluster_lstm(ctx, lstm.hidden)) return run_cluster_lstm(ctx, arguments);
  run_lstm(ctx, arguments);
}

}  // namespace shoal::ops::cuda
