// Products of more than 64 rows of x and 16-bit weights on the tensor cores of sm_90a, in the layout and the
// order of matrix_layout.cuh, where all blocks run at once: each step of decoding for very many sequences.
//
// Rows and weights pass through a ring each, 64 inputs a stage; as many weights as
// there is room for are asked for before the rows are there. Two warpgroups multiply 64 rows each. They take
// the stages of two segments in turn: the sums of one are added up while the other's are on their way.
#pragma once

#include <cuda.h>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/sm90/broad_product.h"
#include "ops/cuda/gemm/sm90/line_store.cuh"
#include "ops/cuda/gemm/sm90/resident_mma.cuh"
#include "ops/cuda/gemm/sm90/stage_ring.cuh"
#include "ops/cuda/gemm/sm90/wide_store.cuh"
#include "ops/cuda/ptx/shared_address.cuh"

namespace shoal::ops::cuda {

constexpr int kBroadConsumerWarps = 4 * kBroadRows / 64;
constexpr int kBroadThreads = 32 * (kBroadConsumerWarps + 2);  // a warp brings weights, another rows
constexpr int kBroadRowStages = 8;
constexpr int kBroadRowBytes = kBroadRows * 128;  // of a stage
constexpr int kBroadStages = kBroadDepth / (2 * kTileInputs), kBroadSegmentStages = kBroadStages / kSegments;

struct BroadArguments {
  TileArguments tile;
  BroadPlan plan;
  bool lines;           // results are stored by rows, not in the order of the registers (store_broad)
  CUtensorMap rows;     // two tiles of the rows of a block
  CUtensorMap weights;  // two tiles of the outputs of a block
};

// The work of a block, and the layout of its shared memory.
template <int kOutputs>
struct BroadBlock {
  static constexpr int kWeightBytes = kOutputs * 128;  // of a stage

  const BroadArguments& a;
  uint32_t base;
  int row_block, output_block;

  __device__ BroadBlock(const BroadArguments& arguments, uint32_t shared)
      : a(arguments),
        base(shared),
        row_block(static_cast<int>(blockIdx.x) % a.tile.row_blocks),
        output_block(static_cast<int>(blockIdx.x) / a.tile.row_blocks) {}

  __device__ uint32_t rows(int stage) const { return base + static_cast<uint32_t>(stage * kBroadRowBytes); }
  // [row of tiles][tile]
  __device__ uint32_t weights(int stage) const {
    return base + static_cast<uint32_t>(a.plan.weights_offset + stage * kWeightBytes);
  }
  __device__ uint32_t rows_full(int stage) const {
    return base + static_cast<uint32_t>(a.plan.barriers_offset + stage * 8);
  }
  __device__ uint32_t rows_empty(int stage) const { return rows_full(kBroadRowStages + stage); }
  __device__ uint32_t weights_full(int stage) const { return rows_full(2 * kBroadRowStages + stage); }
  __device__ uint32_t weights_empty(int stage) const { return weights_full(a.plan.weight_stages + stage); }

  // By one thread.
  __device__ void init_barriers() const {
    for (int stage = 0; stage < kBroadRowStages; ++stage) {
      init_barrier(rows_full(stage), 1);
      init_barrier(rows_empty(stage), kBroadConsumerWarps);
    }
    for (int stage = 0; stage < a.plan.weight_stages; ++stage) {
      init_barrier(weights_full(stage), 1);
      init_barrier(weights_empty(stage), kBroadConsumerWarps);
    }
    show_barriers();
  }

  // The 64 inputs that are multiplied at a step: of two segments in turn.
  static __device__ int inputs_of(int step) {
    const int within = step % (2 * kBroadSegmentStages);
    return step - within + within % 2 * kBroadSegmentStages + within / 2;
  }

  // By one thread; for constant data.
  __device__ void load_weights() const {
    constexpr int kStageUnits = 2 * kTileBytes / kWeightMapUnit;
    StageRing ring;
    for (int step = 0; step < kBroadStages; ++step) {
      wait_for_phase(weights_empty(ring.stage), ring.parity ^ 1);
      arrive_expecting(weights_full(ring.stage), kWeightBytes);
      copy_rectangle(weights(ring.stage), a.weights, inputs_of(step) * kStageUnits,
                     output_block * (kOutputs / kTileOutputs), weights_full(ring.stage));
      ring.advance(a.plan.weight_stages);
    }
  }

  // By one thread. Rows that do not exist are zeros.
  __device__ void load_rows() const {
    StageRing ring;
    for (int step = 0; step < kBroadStages; ++step) {
      wait_for_phase(rows_empty(ring.stage), ring.parity ^ 1);
      arrive_expecting(rows_full(ring.stage), kBroadRowBytes);
      copy_rectangle(rows(ring.stage), a.rows, inputs_of(step) * 2 * kTileInputs, row_block * kBroadRows,
                     rows_full(ring.stage));
      ring.advance(kBroadRowStages);
    }
  }
};

// A warp's results -> y. Through the shared memory of its rows, once its group has multiplied them, if the
// results of blocks are aligned to 16 bytes and y is overwritten: f32, or the rounded results of pairs.
template <int kOutputs>
__device__ inline void store_broad(const BroadBlock<kOutputs>& block, int group,
                                   float (&totals)[kOutputs / 2]) {
  const TileArguments& a = block.a.tile;
  const int first = static_cast<int>(threadIdx.x / 32) * kLineRows;
  const int64_t row = static_cast<int64_t>(block.row_block) * kBroadRows + first;
  const int results = kOutputs / (a.paired ? 2 : 1), n = block.output_block * results;
  if (!block.a.lines)
    return a.paired ? store_plain<true>(a, row, n, totals) : store_plain<false>(a, row, n, totals);
  const auto shared = [&](int stage) {
    return block.rows(stage) + static_cast<uint32_t>(first * kLineBytes);
  };
  const int size = a.paired ? 2 : 4;
  const int64_t pitch = a.epilogue.y_stride * size;
  char* const to = static_cast<char*>(a.epilogue.y) + row * pitch + n * size;
  if (a.paired) {
    float values[kOutputs / 4];
    swiglu_of(totals, values);
    wait_for_group(group);
    share_rounded(shared(0), values, a.epilogue.y_dtype);
    return store_lines<kOutputs / 16>(shared(0), to, pitch, a.rows - row);
  }
  finish_plain(a, n, totals);
  wait_for_group(group);
#pragma unroll
  for (int piece = 0; piece < kOutputs / kLineOutputs; ++piece) {
    share_floats(shared(piece), totals, piece * (kLineOutputs / kTileOutputs));
    store_lines<kLineVectors>(shared(piece), to + piece * kLineBytes, pitch, a.rows - row);
  }
}

// One of the warps that multiply.
template <typename T, int kOutputs>
class BroadConsumer {
 public:
  using Sums = float[kOutputs / 2];

  __device__ BroadConsumer(const BroadBlock<kOutputs>& block, int group) : block_(block), group_(group) {}

  // totals: zeros. Unrolled, so that the compiler sees which sums are done where they are added.
  __device__ void run(Sums& totals) {
    Sums even, odd;
#pragma unroll
    for (int segment = 0; segment < kSegments; segment += 2) {
#pragma unroll
      for (int stage = 0; stage < kBroadSegmentStages; ++stage) {
        multiply(even, stage > 0);
        if (segment > 0 && stage == 0) add(odd, totals);
        multiply(odd, stage > 0);
      }
      add(even, totals);
    }
    wait_for_multiplications<0>();
    add(odd, totals);
  }

 private:
  // Starts the products of a stage; those of the previous stage are done.
  __device__ void multiply(Sums& sums, uint32_t add) {
    wait_for_phase(block_.weights_full(weights_.stage), weights_.parity);
    wait_for_phase(block_.rows_full(rows_.stage), rows_.parity);
    pin(sums);
    begin_multiplications();
    multiply_pair<T>(sums,
                     operand_of_pairs_at(block_.rows(rows_.stage) + static_cast<uint32_t>(group_ * 64 * 128)),
                     operand_at(block_.weights(weights_.stage), 2 * kTileBytes), add);
    end_multiplications();
    wait_for_multiplications<1>();
    if (last_rows_ >= 0 && threadIdx.x % 32 == 0) {
      arrive(block_.rows_empty(last_rows_));
      arrive(block_.weights_empty(last_weights_));
    }
    last_rows_ = rows_.stage, last_weights_ = weights_.stage;
    rows_.advance(kBroadRowStages);
    weights_.advance(block_.a.plan.weight_stages);
  }
  // sums that are done.
  static __device__ void add(Sums& sums, Sums& totals) {
    pin(sums);
#pragma unroll
    for (int i = 0; i < kOutputs / 2; ++i) totals[i] = __fadd_rn(totals[i], sums[i]);
  }

  const BroadBlock<kOutputs>& block_;
  int group_;
  int last_rows_ = -1, last_weights_ = -1;  // stages whose multiplications may be unfinished
  StageRing rows_, weights_;
};

template <typename T, int kOutputs>
__global__ void __launch_bounds__(kBroadThreads, 1)
    broad_kernel(const __grid_constant__ BroadArguments arguments) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char shared_bytes[];
  const BroadBlock<kOutputs> block(arguments, shared_address(shared_bytes));
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
  const bool leads = threadIdx.x % 32 == 0;
  if (warp == kBroadConsumerWarps && leads) block.init_barriers();
  if (threadIdx.x == 0) prefetch_map(arguments.rows);
  __syncthreads();
  if (warp == kBroadConsumerWarps) {
    if (leads) block.load_weights();
    __syncwarp();
    return wait_for_inputs();
  }
  wait_for_inputs();
  if (warp > kBroadConsumerWarps) {
    if (leads) block.load_rows();
    return;
  }
  const int group = warp / 4;
  float totals[kOutputs / 2] = {};
  BroadConsumer<T, kOutputs>(block, group).run(totals);
  store_broad(block, group, totals);
#endif
}

}  // namespace shoal::ops::cuda
