// Products of 17 to 64 rows of x and 16-bit weights of few outputs on the tensor cores of sm_90a, in the
// layout and the order of matrix_layout.cuh: what comes after attention and the inner product of a layer.
//
// As in resident.cuh, operands lie in shared memory, whole. Here a block has one segment of them, and the
// blocks of a cluster have all segments of 64 outputs: each adds up an eighth of the results from the shared
// memory of all. x lies as the op before left it, so all threads copy it, 16 bytes at a time.
#pragma once

#include "ops/cuda/async_copy.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/resident_arguments.cuh"
#include "ops/cuda/resident_mma.cuh"
#include "ops/cuda/tile_copy.cuh"
#include "ops/cuda/wide_store.cuh"

namespace shoal::ops::cuda {

constexpr int kSplitThreads = 256;  // to copy x and to add up; the first warpgroup multiplies
constexpr int kSplitTileRows = 8, kSplitOutputs = kSplitTileRows * kTileOutputs;
constexpr int kSplitPitch = kSplitOutputs + kWideSumPadding;  // floats between rows of sums

// Starts to copy the segment's tiles of all rows: a warp always the same eight rows, of every tile or of
// every so many. Rows that do not exist are zeros.
__device__ inline void copy_segment_rows(const ResidentArguments& a, uint32_t to, int first_tile) {
  const TileArguments& t = a.tile;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int step = kSplitThreads / 32 / a.plan.groups, group = warp % a.plan.groups;
  int tile = warp / a.plan.groups;
  if (tile >= step) return;
  const int row_of_eight = lane / 4, row = group * 8 + row_of_eight;
  const bool exists = row < t.rows;
  const uint4* from =
      exists ? t.x + static_cast<int64_t>(row) * t.row_stride + (first_tile + tile) * 4 + lane % 4 : t.x;
  to += static_cast<uint32_t>((tile * a.plan.groups + group) * kTileBytes + row_of_eight * 64 +
                              swizzled_chunk(row_of_eight, lane % 4) * 16);
  for (; tile < t.segment_tiles; tile += step) {
    copy_or_zero(to, from, exists);
    if (exists) from += step * 4;
    to += static_cast<uint32_t>(step * a.plan.groups * kTileBytes);
  }
}

// Results of a block's share, four by each thread.
class SplitShare {
 public:
  __device__ SplitShare(const ResidentArguments& a, int rank) : a_(a) {
    const int items = static_cast<int>(a.tile.rows) * kColumns, share = (items + kSegments - 1) / kSegments;
    item_ = rank * share + static_cast<int>(threadIdx.x);
    exists_ = static_cast<int>(threadIdx.x) < share && item_ < items;
    place_ = {item_ / kColumns, (static_cast<int>(blockIdx.x) / kSegments * kColumns + item_ % kColumns) * 4};
    exists_ = exists_ && place_.n < a.tile.outputs;
    if (exists_) load_before(a.tile, place_, before_);
  }

  // sums_at: of this block; the others' are at the same place.
  __device__ void store(uint32_t sums_at) {
    static_assert(64 * kColumns / kSegments <= kSplitThreads);
    if (!exists_) return;
    sums_at += static_cast<uint32_t>((item_ / kColumns * kSplitPitch + item_ % kColumns * 4) * 4);
    float4 sums[kSegments];
#pragma unroll
    for (int s = 0; s < kSegments; ++s)
      sums[s] = load_from_cluster(address_in(sums_at, static_cast<uint32_t>(s)));
    FourFloats total = {};
#pragma unroll
    for (const float4& four : sums) {
      total[0] = __fadd_rn(total[0], four.x), total[1] = __fadd_rn(total[1], four.y);
      total[2] = __fadd_rn(total[2], four.z), total[3] = __fadd_rn(total[3], four.w);
    }
    finish_outputs(a_.tile, place_, before_, total);
    store_outputs(a_.tile, place_, total);
  }

 private:
  static constexpr int kColumns = kSplitOutputs / 4;

  const ResidentArguments& a_;
  OutputPlace place_;
  FourFloats before_;
  int item_;
  bool exists_;
};

template <typename T>
__global__ void __launch_bounds__(kSplitThreads, 2)
    resident_split_kernel(const __grid_constant__ ResidentArguments a) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char shared_bytes[];
  const TileArguments& t = a.tile;
  const auto base = static_cast<uint32_t>(__cvta_generic_to_shared(shared_bytes));
  const uint32_t weights = base + static_cast<uint32_t>(a.plan.weights_offset),
                 weights_full = base + static_cast<uint32_t>(a.plan.barriers_offset);
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
  const int rank = static_cast<int>(rank_in_cluster()), first_tile = rank * t.segment_tiles;
  const int first = static_cast<int>(blockIdx.x) / kSegments * kSplitTileRows;
  const auto row_bytes = static_cast<uint32_t>(t.segment_tiles * kTileBytes);
  if (threadIdx.x == 0) {
    init_barrier(weights_full, 1);
    show_barriers();
    arrive_expecting(weights_full,
                     static_cast<uint32_t>(min(kSplitTileRows, t.tile_rows - first)) * row_bytes);
  }
  __syncthreads();
  static_assert(kSplitTileRows == kSplitThreads / 32);
  if (threadIdx.x % 32 == 0 && first + warp < t.tile_rows)  // a row of tiles by each warp
    copy_bulk(weights + static_cast<uint32_t>(warp) * row_bytes,
              t.weight + (static_cast<int64_t>(first + warp) * t.row_tiles + first_tile) * (kTileBytes / 16),
              row_bytes, weights_full);
  __syncwarp();

  wait_for_inputs();
  copy_segment_rows(a, base, first_tile);
  SplitShare share(a, rank);
  wait_for_copies();
  show_to_tensor_cores();
  __syncthreads();
  wait_for_phase(weights_full, 0);
  if (warp < 4) {
    float sums[kSplitOutputs / 2];
    multiply_resident<T>(t.segment_tiles, a.plan.groups, base, weights, t.segment_tiles, sums);
    wait_for_group(0);  // the sums take the place of the operands
    if (const int row = warp * 16; row < a.plan.groups * 8)
      share_sums<0, kSplitTileRows>(reinterpret_cast<float*>(shared_bytes) + row * kSplitPitch, kSplitPitch,
                                    sums);
  }
  __syncwarp();
  synchronize_cluster();
  share.store(base);
  __syncwarp();
  leave_cluster();  // the others have read this block's sums
#endif
}

}  // namespace shoal::ops::cuda
