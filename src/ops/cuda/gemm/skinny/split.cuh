// Products of at most eight rows by large matrices of few outputs, whose rows of tiles do not come out even
// among blocks: the two blocks of a cluster share them, and divide their segments.
//
// A cluster takes neighbouring rows of tiles; each of its blocks half of the segments, by groups of warps
// that take units of two or three rows in turn. Each block adds up every other row of tiles, whose sums both
// send to it. The inputs, of 16 bits, are in shared memory, too.
#pragma once

#include "ops/cuda/gemm/skinny/skinny.cuh"
#include "ops/cuda/gemm/skinny/split_cut.h"
#include "ops/cuda/gemm/skinny/streamed_weights.cuh"
#include "ops/cuda/ptx/shared_address.cuh"

namespace shoal::ops::cuda {

// What a block does.
struct SplitPart {
  int rank, first, end;  // in the cluster; its rows of tiles
  int group, segment;    // the calling warp's; of the block's
  int begin, tiles;      // of that segment

  __device__ explicit SplitPart(const SkinnyArguments& a) {
    const int clusters = static_cast<int>(gridDim.x) / kSplitBlocks;
    const int cluster = static_cast<int>(blockIdx.x) / kSplitBlocks;
    const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
    rank = static_cast<int>(rank_in_cluster());
    first = first_row_of(cluster, a.tile_rows, clusters);
    end = first_row_of(cluster + 1, a.tile_rows, clusters);
    group = warp / kSplitSegments, segment = warp % kSplitSegments;
    begin = (rank * kSplitSegments + segment) * a.segment_tiles;
    tiles = min(a.segment_tiles, a.row_tiles - begin);
  }
  __device__ int first_tile(const SkinnyArguments& a) const {
    return rank * kSplitSegments * a.segment_tiles;
  }
  __device__ int tiles_of_block(const SkinnyArguments& a) const {
    return min(kSplitSegments * a.segment_tiles, a.row_tiles - first_tile(a));
  }
};

// The sums of a cluster on their way to the block that adds them up, which has every other row of tiles: a
// block waits for the sums that it adds, and no more.
class SplitSums {
 public:
  // By all threads of both blocks, before either sends.
  __device__ SplitSums(const SkinnyArguments& a, const SplitShared& at, const SplitPart& part, char* shared)
      : sums_(shared_address(shared + at.sums)), arrived_(shared_address(shared + at.arrived)) {
    if (threadIdx.x == 0) {
      const int own = (part.end - part.first - part.rank + 1) / kSplitBlocks;
      init_barrier(arrived_, 1);
      show_barriers();
      arrive_expecting(arrived_, static_cast<uint32_t>(own * kSegments * a.rows * kTileOutputs * 4));
    }
    __syncthreads();
    leave_cluster();  // both have such a barrier
  }
  // By a warp: of its segment, of row of tiles `row` of the cluster's, which is r of its unit.
  template <typename Sums>
  __device__ void send(const SplitPart& part, const Sums& sums, int r, int row, float unit, int rows) const {
    const auto to = static_cast<uint32_t>(row % kSplitBlocks);
    const int segment = part.rank * kSplitSegments + part.segment;
    const int place = (row / kSplitBlocks * kSegments + segment) * SplitShared::kTileResults * 4;
    sums.send(r, unit, address_in(sums_ + static_cast<uint32_t>(place), to), address_in(arrived_, to), rows);
  }
  __device__ void wait() const { wait_for_phase</*kSent=*/true>(arrived_, 0); }

 private:
  uint32_t sums_, arrived_;
};

// Four neighbouring results of a row that a thread stores.
class SplitResult {
 public:
  __device__ SplitResult(const SkinnyArguments& a, const SplitPart& part) {
    constexpr int kFours = kTileOutputs / 4;
    const int thread = static_cast<int>(threadIdx.x), four = thread % kFours,
              row = thread / kFours % kNormRows;
    const int own = thread / kFours / kNormRows, tile_row = part.first + own * kSplitBlocks + part.rank;
    place_ = own * kSegments * SplitShared::kTileResults + row * kTileOutputs + four * 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int n = tile_row * kTileOutputs + four * 4 + i;
      results_[i] = AwaitedResult(a.epilogue, row, n, tile_row < part.end && row < a.rows && n < a.outputs);
    }
  }
  // Asks for what is added to them.
  __device__ void ask(const SkinnyArguments& a) {
#pragma unroll
    for (AwaitedResult& result : results_) result.ask(a.epilogue);
  }
  // sums: the block's, which have arrived.
  __device__ void store(const SkinnyArguments& a, const float* sums) const {
    if (!results_[0].exists()) return;
    float4 of_segment[kSegments];
#pragma unroll
    for (int s = 0; s < kSegments; ++s)
      of_segment[s] = *reinterpret_cast<const float4*>(sums + place_ + s * SplitShared::kTileResults);
    float total[4] = {};
#pragma unroll
    for (const float4& four : of_segment) {
      total[0] = __fadd_rn(total[0], four.x), total[1] = __fadd_rn(total[1], four.y);
      total[2] = __fadd_rn(total[2], four.z), total[3] = __fadd_rn(total[3], four.w);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (results_[i].exists()) results_[i].store(a.epilogue, total[i]);
  }

 private:
  int place_;
  AwaitedResult results_[4];
};

template <typename T, TileWeights kWeights, int kTileRows>
__global__ void __launch_bounds__(kSkinnyThreads, 1) split_kernel(const SkinnyArguments a) {
#if __CUDA_ARCH__ >= 900
  constexpr int kBits = bits_of(kWeights);
  extern __shared__ uint4 shared_vectors[];
  char* shared = reinterpret_cast<char*>(shared_vectors);
  const SplitShared at(a);
  const SplitPart part(a);
  float* const scales = reinterpret_cast<float*>(shared + at.scales);
  if constexpr (kBits == 8) {
    constexpr int kFours = kTileOutputs / 4;
    const float* const from = a.scales + part.first * kTileOutputs;
    for (int i = static_cast<int>(threadIdx.x); i < (part.end - part.first) * kFours; i += kSkinnyThreads)
      copy_async<16>(scales + i * 4, from + i * 4);
  }
  const int step = kSplitGroups * kTileRows, start = part.group * kTileRows;
  StreamedWeights<kBits, kTileRows, true> weights(
      a, shared, at.barriers,
      {.first = part.first + start, .end = part.end, .step = step, .stages = a.stages}, part.begin,
      part.tiles);
  const SplitSums all_sums(a, at, part, shared);
  SplitResult result(a, part);
  wait_for_predecessor();  // (a layer of S2-Pro of one row, an H200: int8 32.7 -> 32.2, fp8 37.3 -> 36.7 us)
  result.ask(a);
  stage_rows(a, at, shared, part.first_tile(a) * 4, part.tiles_of_block(a) * 4,
             [&] { weights.ask_for_rest(); });

  let_successor_start();
  using Operands = TileOperands<T, kWeights, kTileRows>;
  Operands operands(a, part.begin);
  NormedInput input(a, at, shared, part.begin - part.first_tile(a));
  for (int row = start; row < part.end - part.first; row += step) {
    operands.set_scales(scales + row * kTileOutputs);
    SegmentSums<T, kTileRows, false, kBits == 8> sums;
    multiply_segment<kTileRows, kTilesTogether>(a, weights, operands, input, part.tiles, sums);
#pragma unroll
    for (int r = 0; r < kTileRows; ++r)
      if (row + r < part.end - part.first) all_sums.send(part, sums, r, row + r, Operands::kUnit, a.rows);
  }
  all_sums.wait();
  result.store(a, reinterpret_cast<const float*>(shared + at.sums));
#endif
}

}  // namespace shoal::ops::cuda
