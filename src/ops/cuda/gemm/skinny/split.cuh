// Products of at most eight rows by large matrices of few outputs, whose rows of tiles do not come out even
// among blocks: the two blocks of a cluster share them, and divide their segments.
//
// A cluster takes neighbouring rows of tiles; each of its blocks half of the segments, by groups of warps
// that take units of two or three rows in turn. The sums of all wait in shared memory; at the end each block
// adds up every other row of tiles from both, in order. The inputs, of 16 bits, are in shared memory, too.
#pragma once

#include "ops/cuda/gemm/skinny/skinny.cuh"
#include "ops/cuda/gemm/skinny/split_cut.h"
#include "ops/cuda/gemm/skinny/streamed_weights.cuh"

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

// Four neighbouring results of a row that a thread stores.
class SplitResult {
 public:
  // Asks for what is added to them.
  __device__ SplitResult(const SkinnyArguments& a, const SplitPart& part) {
    constexpr int kFours = kTileOutputs / 4;
    const int thread = static_cast<int>(threadIdx.x), four = thread % kFours;
    row_ = thread / kFours % kNormRows;
    tile_row_ = thread / kFours / kNormRows * kSplitBlocks + part.rank;
    place_ = row_ * kTileOutputs + four * 4;
    n_ = (part.first + tile_row_) * kTileOutputs + four * 4;
    exists_ = part.first + tile_row_ < part.end && row_ < a.rows;
    if (!exists_ || !a.epilogue.accumulate) return;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (n_ + i < a.outputs)
        before_[i] = static_cast<const float*>(a.epilogue.y)[row_ * a.epilogue.y_stride + n_ + i];
  }

  // sums: where they are in both blocks.
  __device__ void store(const SkinnyArguments& a, uint32_t sums) const {
    if (!exists_) return;
    float4 of_segment[kSegments];
#pragma unroll
    for (int s = 0; s < kSegments; ++s) {
      const int index =
          (tile_row_ * kSplitSegments + s % kSplitSegments) * SplitShared::kTileResults + place_;
      of_segment[s] = load_from_cluster(
          address_in(sums + static_cast<uint32_t>(index * 4), static_cast<uint32_t>(s / kSplitSegments)));
    }
    float total[4] = {};
#pragma unroll
    for (const float4& four : of_segment) {
      total[0] = __fadd_rn(total[0], four.x), total[1] = __fadd_rn(total[1], four.y);
      total[2] = __fadd_rn(total[2], four.z), total[3] = __fadd_rn(total[3], four.w);
    }
    const ProductEpilogue& e = a.epilogue;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int n = n_ + i;
      if (n >= a.outputs) return;
      store_value(e.y, row_ * e.y_stride + n, e.y_dtype,
                  epilogue_value(total[i], e.bias ? __ldg(e.bias + n) : 0.0f,
                                 e.scale ? __ldg(e.scale + n) : 1.0f, before_[i], e.activation));
    }
  }

 private:
  int row_, tile_row_, place_, n_;
  bool exists_;
  float before_[4] = {};
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
  wait_for_inputs();
  const SplitResult result(a, part);
  stage_rows(a, at, shared, part.first_tile(a) * 4, part.tiles_of_block(a) * 4,
             [&] { weights.ask_for_rest(); });

  using Operands = TileOperands<T, kWeights, kTileRows>;
  Operands operands(a, part.begin);
  NormedInput input(a, at, shared, part.begin - part.first_tile(a));
  float* const sums_at = reinterpret_cast<float*>(shared + at.sums);
  for (int row = start; row < part.end - part.first; row += step) {
    operands.set_scales(scales + row * kTileOutputs);
    SegmentSums<T, kTileRows, false, kBits == 8> sums;
    multiply_segment<kTileRows, 4>(a, weights, operands, input, part.tiles, sums);
#pragma unroll
    for (int r = 0; r < kTileRows; ++r)
      sums.store(r, Operands::kUnit,
                 sums_at + ((row + r) * kSplitSegments + part.segment) * SplitShared::kTileResults);
  }
  __syncwarp();
  synchronize_cluster();
  result.store(a, static_cast<uint32_t>(__cvta_generic_to_shared(sums_at)));
  __syncwarp();
  leave_cluster();  // the other block has read this one's sums
#endif
}

}  // namespace shoal::ops::cuda
