// Products of 16-bit matrices and many rows on the tensor cores of sm_90a, in the layout and the order of
// matrix_layout.cuh.
//
// One warpgroup brings tiles of x and of weights into the stages of shared memory (wide_load.cuh); each of
// the others multiplies 64 rows of x by all outputs of the block (wgmma), a segment after the other: its sums
// run in one set of registers, the segments' total in another. The loading warpgroup is already at the next
// result while the others store one.
//
// Where there are too few results for all multiprocessors, the blocks of a cluster divide the segments of a
// result among themselves: each leaves the sums of its segments in its shared memory, and each adds up a
// share of the result from all of them, in order.
#pragma once

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/sm90/wide_store.cuh"
#include "ops/cuda/ptx/shared_address.cuh"
#include "ops/cuda/ptx/wgmma.cuh"

namespace shoal::ops::cuda {

// One of the warps that multiply.
template <typename T, int kShape>
class WideConsumer {
 public:
  using Sizes = WideSizes<kShape>;
  using Sums = float[Sizes::kSums];

  __device__ WideConsumer(const WideArguments& arguments, const WideShared<kShape>& shared, int group)
      : shared_(shared), group_(group), copied_(!arguments.has_row_map()), pairs_(arguments.map_tiles == 2) {}

  // sums = the products over a segment of this many tiles.
  __device__ void run_segment(int tiles, Sums& sums) {
    const auto weight_group = static_cast<uint32_t>(shared_.plan.copy_tiles * kTileBytes);
    uint32_t add = 0;
    int last = -1;  // stage whose multiplications may be unfinished
    for (int tile = 0; tile < tiles; tile += shared_.plan.stage_tiles) {
      const int stage = ring_.stage, count = min(shared_.plan.stage_tiles, tiles - tile);
      wait_for_phase(shared_.full(stage), ring_.parity);
      if (copied_) show_to_tensor_cores();
      const uint64_t a = rows_operand(shared_.rows(stage));
      const uint64_t b = operand_at(shared_.weights(stage), weight_group);
      if (Sizes::kThis.large && count > shared_.plan.copy_tiles)
        multiply_pairs(count, sums, a, b, add);
      else if (count == 2)
        multiply_stage<2>(sums, a, b, add);
      else if (count == 4)
        multiply_stage<4>(sums, a, b, add);
      else if (count == 1)
        multiply_stage<1>(sums, a, b, add);
      else
        multiply_stage<3>(sums, a, b, add);
      add = 1;
      if (last >= 0) {
        wait_for_multiplications<1>();
        release(last);
      }
      last = stage;
      ring_.advance(shared_.plan.stages);
    }
    wait_for_multiplications<0>();
    pin(sums);
    if (last >= 0) release(last);
  }

 private:
  // Over kTiles tiles of 32 inputs.
  template <int kTiles>
  __device__ void multiply_stage(Sums& sums, uint64_t a, uint64_t b, uint32_t add) const {
    constexpr uint64_t kTile = Sizes::kRowBytes >> 4;
    const uint64_t to_odd = pairs_ ? kSecondTile : kTile;
    pin(sums);
    begin_multiplications();
#pragma unroll
    for (int i = 0; i < kTiles; ++i, b += kTileBytes >> 4) {
      multiply_wide<T>(sums, a, b, i == 0 ? add : 1);
      multiply_wide<T>(sums, a + kSecondHalf, b + kSecondHalf, 1);
      a += i % 2 == 0 ? to_odd : 2 * kTile - to_odd;
    }
    end_multiplications();
  }
  // Over the pairs of tiles of a stage of several copies.
  __device__ void multiply_pairs(int tiles, Sums& sums, uint64_t a, uint64_t b, uint32_t add) const {
    constexpr uint64_t kRows = 2 * Sizes::kRowBytes >> 4, kWeights = 2 * Sizes::kWeightBytes >> 4;
    const uint64_t to_odd = pairs_ ? kSecondTile : kRows / 2;
    pin(sums);
#pragma unroll 1
    for (int i = 0; i < tiles; i += 2, a += kRows, b += kWeights, add = 1) {
      begin_multiplications();
      multiply_wide<T>(sums, a, b, add);
      multiply_wide<T>(sums, a + kSecondHalf, b + kSecondHalf, 1);
      multiply_wide<T>(sums, a + to_odd, b + (kTileBytes >> 4), 1);
      multiply_wide<T>(sums, a + to_odd + kSecondHalf, b + (kTileBytes >> 4) + kSecondHalf, 1);
    }
    end_multiplications();
  }
  // The rows of this warp's group.
  __device__ uint64_t rows_operand(uint32_t rows) const {
    const auto group = static_cast<uint32_t>(group_ * 64 * 64);
    return pairs_ ? operand_of_pairs_at(rows + 2 * group) : operand_at(rows + group, kTileBytes);
  }
  __device__ void release(int stage) const {
    if (threadIdx.x % 32 == 0) arrive(shared_.empty(stage));
  }

  const WideShared<kShape>& shared_;
  int group_;
  bool copied_;  // rows come by copies of threads, whose writes the tensor cores must be shown
  bool pairs_;   // and are arranged by pairs of tiles
  StageRing ring_;
};

__device__ inline int tiles_of_segment(const TileArguments& a, int segment) {
  return min(a.segment_tiles, a.row_tiles - segment * a.segment_tiles);
}

// Adds a result's segments' sums, in order.  totals: zeros.  before_last(): called before the last segment is
// multiplied.
template <typename T, int kShape, typename BeforeLast>
__device__ inline void total_segments(const WideWork<kShape>& work, WideConsumer<T, kShape>& consumer,
                                      float (&totals)[WideSizes<kShape>::kSums], BeforeLast&& before_last) {
  constexpr int kSums = WideSizes<kShape>::kSums;
  // Set so that the compiler keeps no registers for sums of the result before.
  float sums[kSums] = {};
  for (int segment = work.segment_begin; segment < work.segment_end; ++segment) {
    if (segment + 1 == work.segment_end) before_last();
    consumer.run_segment(tiles_of_segment(work.arguments.tile, segment), sums);
#pragma unroll
    for (int i = 0; i < kSums; ++i) totals[i] = __fadd_rn(totals[i], sums[i]);
  }
}

// Of a result.
template <int kShape>
__device__ inline int64_t first_row_of_warp(const WideWork<kShape>& work, int group) {
  return static_cast<int64_t>(work.row_block()) * WideSizes<kShape>::kRows + group * 64 +
         static_cast<int>(threadIdx.x % 128 / 32) * 16;
}

// Unsplit: group `group`'s rows of every result of the block.
template <typename T, int kShape>
__device__ inline void make_results(const WideArguments& arguments, const WideShared<kShape>& shared,
                                    float* own_sums, int group) {
  using Sizes = WideSizes<kShape>;
  const TileArguments& a = arguments.tile;
  WideConsumer<T, kShape> consumer(arguments, shared, group);
  for (WideWork<kShape> work(arguments); work.has_result(); work.next()) {
    const int64_t row = first_row_of_warp(work, group);
    float results[Sizes::kSums] = {};
    if constexpr (Sizes::kThis.by_segment) {
      consumer.run_segment(tiles_of_segment(a, work.segment_begin), results);
      store_segment(a, work.segment_begin, row, work.output_block() * Sizes::kOutputs, results);
    } else {
      total_segments(work, consumer, results, [] {});
      if (a.paired)
        store_totals<kShape, true>(a, own_sums, row, work.output_block() * (Sizes::kOutputs / 2), results);
      else
        store_totals<kShape, false>(a, own_sums, row, work.output_block() * Sizes::kOutputs, results);
    }
  }
}

// Split: the sums of the block's segments -> [segment][row][kSumPitch].
template <typename T, int kShape>
__device__ inline void make_segments(const WideArguments& arguments, const WideShared<kShape>& shared,
                                     float* sums_of_block, int group) {
  using Sizes = WideSizes<kShape>;
  WideConsumer<T, kShape> consumer(arguments, shared, group);
  const WideWork<kShape> work(arguments);
  float* to = sums_of_block + (group * 64 + static_cast<int>(threadIdx.x % 128 / 32) * 16) * Sizes::kSumPitch;
  for (int segment = work.segment_begin; segment < work.segment_end; ++segment) {
    float sums[Sizes::kSums];
    consumer.run_segment(tiles_of_segment(arguments.tile, segment), sums);
    share_sums<0, Sizes::kOutputs / kTileOutputs>(to, Sizes::kSumPitch, sums);
    to += Sizes::kRows * Sizes::kSumPitch;
  }
}

// The warps of a block: some load, and consume(group) is for those of each group of rows.
template <int kShape, typename Consume>
__device__ inline void run_warps(const WideArguments& arguments, const WideShared<kShape>& shared,
                                 Consume&& consume) {
  constexpr int kRegisters = WideSizes<kShape>::kThis.consumer_registers;
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
  if (threadIdx.x == 0) shared.init_barriers(arguments.has_row_map());
  if (threadIdx.x == 32 && arguments.has_row_map()) prefetch_map(arguments.rows);
  __syncthreads();
  if (warp < 4) {
    if constexpr (kRegisters > 0) give_registers<kWideLoaderRegisters>();
    const bool leads = threadIdx.x % 32 == 0;
    if (warp == 0) {
      if (leads) load_weights<kShape>(arguments, shared);
      wait_for_inputs();
    } else {
      wait_for_inputs();
      if (!arguments.has_row_map())
        load_rows<kShape>(arguments, shared, warp - 1);
      else if (warp == 1 && leads)
        load_mapped_rows<kShape>(arguments, shared);
    }
  } else {
    if constexpr (kRegisters > 0) take_registers<kRegisters>();
    wait_for_inputs();
    consume((warp - 4) / 4);
  }
}

template <typename T, int kShape>
__global__ void __launch_bounds__(kWideShapes[kShape].threads(), kWideShapes[kShape].blocks)
    wide_kernel(const __grid_constant__ WideArguments arguments) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Sizes = WideSizes<kShape>;
  extern __shared__ __align__(1024) char shared_bytes[];
  const WideShared<kShape> shared{arguments.plan, shared_address(shared_bytes)};
  float* const sums = reinterpret_cast<float*>(shared_bytes + arguments.plan.sums_offset);
  run_warps<kShape>(arguments, shared, [&](int group) {
    const int warp = static_cast<int>(threadIdx.x / 32) - 4;
    if constexpr (Sizes::kThis.split)
      make_segments<T, kShape>(arguments, shared, sums, group);
    else
      make_results<T, kShape>(arguments, shared, sums + warp * 16 * Sizes::kSumPitch, group);
  });
  if constexpr (Sizes::kThis.split) {
    const WideWork<kShape> work(arguments);
    const int64_t first_row = static_cast<int64_t>(work.row_block()) * Sizes::kRows;
    const auto sums_at = shared_address(sums);
    __syncwarp();
    synchronize_cluster();
    if (arguments.tile.paired)
      store_share<kShape, true>(arguments, sums_at, first_row, work.output_block());
    else
      store_share<kShape, false>(arguments, sums_at, first_row, work.output_block());
    __syncwarp();
    leave_cluster();  // the others have read this block's sums
  }
#endif
}

}  // namespace shoal::ops::cuda
