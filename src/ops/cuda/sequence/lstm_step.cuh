// A step of an LSTM by teams of 256 threads: a team has 32 units, eight lanes of a warp each. Lane `slice` of
// a unit holds the weights of its four gates for every eighth group of four hidden values.
//
// Order: lane j adds up hidden values 4 j + 32 i + 0 .. 3 by rising i, in one chain of fma; the lanes' sums
// are added in pairs four, two and one lanes apart. Then comes the product with the inputs. The same in every
// kernel, so results do not depend on which one runs.
#pragma once

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/rows/segment_rows.cuh"
#include "ops/cuda/rows/vector_math.cuh"

namespace shoal::ops::cuda {

constexpr int kTeamThreads = 256;
constexpr int kSlices = 8;                          // lanes of a unit
constexpr int kTeamUnits = kTeamThreads / kSlices;  // 32
constexpr int kStepDepth = 4 * kSlices;             // hidden values that a unit's lanes take together

// Recurrent weights: [2 directions, teams, steps of kStepDepth, 4 gates, kTeamThreads, 4], zeros beyond the
// hidden size.
struct RecurrentLayout {
  int64_t hidden;
  __host__ __device__ int64_t teams() const { return (hidden + kTeamUnits - 1) / kTeamUnits; }
  __host__ __device__ int64_t steps() const { return (hidden + kStepDepth - 1) / kStepDepth; }
  __host__ __device__ int64_t padded() const { return steps() * kStepDepth; }
  // Index of the float4 that thread `thread` of a team reads.
  __host__ __device__ int64_t four(int64_t direction, int64_t team, int64_t step, int gate,
                                   int thread) const {
    return (((direction * teams() + team) * steps() + step) * 4 + gate) * kTeamThreads + thread;
  }
};

// What a thread of a team is.
struct LstmLane {
  int slice;  // of the hidden values; slices 0 .. 3 and 4 .. 7 in pairs hold a gate's sum: gate slice / 2
  int unit;   // of the team
  __device__ explicit LstmLane(int thread) : slice(thread % kSlices), unit(thread / kSlices) {}
  __device__ int gate() const { return slice / 2; }
};

__device__ inline void accumulate(const float4& weight, const float4& hidden, float& sum) {
  sum = fmaf(weight.x, hidden.x, sum);
  sum = fmaf(weight.y, hidden.y, sum);
  sum = fmaf(weight.z, hidden.z, sum);
  sum = fmaf(weight.w, hidden.w, sum);
}

// The whole sum of the lane's gate, of the slices' sums of all four.
__device__ inline float sum_of_gate(const float (&sums)[4], int slice) {
  const bool upper = (slice & 4) != 0, odd = (slice & 2) != 0;
  const float first = (upper ? sums[2] : sums[0]) + __shfl_xor_sync(~0u, upper ? sums[0] : sums[2], 4);
  const float second = (upper ? sums[3] : sums[1]) + __shfl_xor_sync(~0u, upper ? sums[1] : sums[3], 4);
  const float pair = (odd ? second : first) + __shfl_xor_sync(~0u, odd ? first : second, 2);
  return pair + __shfl_xor_sync(~0u, pair, 1);
}

// The new cell and hidden value, in all lanes of the unit.  gate: the sum of the lane's gate (i, f, g or o).
__device__ inline float hidden_of(float gate, int slice, float& cell) {
  const float value = sigmoid_or_tanh(gate, slice / 2 == 2);
  const auto of_gate = [&](int number) { return __shfl_sync(~0u, value, 2 * number, kSlices); };
  const float input = of_gate(0), forget = of_gate(1), candidate = of_gate(2), output = of_gate(3);
  cell = fmaf(forget, cell, input * candidate);
  return output * tanh_of(cell);
}

struct LstmArguments {
  const float* products;  // [rows, 2 * 4 * hidden] of the inputs
  const float4* recurrent;
  RecurrentLayout layout;
  SegmentRows segments;
  int sets;  // into which segments are dealt, from the longest to the shortest
  float* y;
  int64_t y_stride;

  __device__ int hidden() const { return static_cast<int>(layout.hidden); }
  __device__ const float* product(int64_t row, int direction, int gate, int unit) const {
    return products + (row * 8 + direction * 4 + gate) * layout.hidden + unit;
  }
  __device__ float* result(int64_t row, int direction, int unit) const {
    return y + row * y_stride + direction * layout.hidden + unit;
  }
};

// The segments of a set, the longest first.
template <int kStates>
struct LstmSet {
  int64_t begin[kStates];
  int length[kStates];  // 0: no such segment

  // By all threads of a block; shared.
  __device__ void take(const SegmentRows& segments, int set, int sets) {
    const int thread = thread_of_block(), threads = static_cast<int>(blockDim.x);
    if (thread < kStates) length[thread] = 0, begin[thread] = 0;
    __syncthreads();
    for (int i = thread; i < segments.count; i += threads) {
      const int64_t rows = segments.rows(i);
      int before = 0;
      for (int j = 0; j < segments.count; ++j) {
        const int64_t other = segments.rows(j);
        before += other > rows || (other == rows && j < i);
      }
      if (before % sets != set) continue;
      begin[before / sets] = segments.begin(i);
      length[before / sets] = static_cast<int>(rows);
    }
    __syncthreads();
  }
  __device__ int active(int step) const {
    int count = 0;
#pragma unroll
    for (int state = 0; state < kStates; ++state) count += length[state] > step;
    return count;
  }
  __device__ int64_t row(int state, int step, int direction) const {
    return begin[state] + (direction == 0 ? step : length[state] - 1 - step);
  }
};

// Zeros into the gaps of y, which the blocks of the grid share.
__device__ inline void clear_gaps(const LstmArguments& a) {
  const int width = 2 * a.hidden();
  for (int segment = -1 + static_cast<int>(blockIdx.x); segment < a.segments.count;
       segment += static_cast<int>(gridDim.x)) {
    const Gap gap = gap_behind(a.segments, segment);
    for (int64_t row = gap.begin; row < gap.end; ++row)
      for (int i = thread_of_block(); i < width; i += static_cast<int>(blockDim.x))
        a.y[row * a.y_stride + i] = 0.0f;
  }
}

// lstm_cluster.cu: hidden size kClusterHidden, on GPUs with clusters.
constexpr int kClusterHidden = 256;
bool has_cluster_lstm(const Context& ctx, int64_t hidden);
void run_cluster_lstm(Context& ctx, LstmArguments arguments);

}  // namespace shoal::ops::cuda
