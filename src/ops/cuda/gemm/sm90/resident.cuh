// Products of 17 to 64 rows of x and 16-bit weights on the tensor cores of sm_90a, in the layout and the
// order of matrix_layout.cuh: each step of decoding for many sequences.
//
// All rows are in the shared memory of a block, beside its part of the matrix: there is no ring, and no copy
// waits for a free buffer. This gains more than it costs (the blocks of the next kernel have no room to start
// early): 4,096 x 1,024 and 64 rows with the norm before it 9.2 -> 6.5 us on an H200.
//
// Four warpgroups multiply one segment each at a time, and store its sums over its rows; then all threads add
// the segments in order.
#pragma once

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/sm90/resident_arguments.cuh"
#include "ops/cuda/gemm/sm90/resident_mma.cuh"
#include "ops/cuda/gemm/sm90/wide_store.cuh"
#include "ops/cuda/ptx/shared_address.cuh"

namespace shoal::ops::cuda {

constexpr int kResidentThreads = 512;

// The shared memory of a block.
struct ResidentShared {
  const ResidentArguments& a;
  uint32_t base;

  __device__ uint32_t rows(int segment) const {
    return base + static_cast<uint32_t>(segment * a.plan.segment_bytes);
  }
  __device__ uint32_t weights() const {
    return base + static_cast<uint32_t>(a.plan.weights_offset);
  }  // [row][tile]
  __device__ uint32_t weights_full() const { return base + static_cast<uint32_t>(a.plan.barriers_offset); }
  __device__ uint32_t rows_full(int segment) const {
    return weights_full() + 8 * static_cast<uint32_t>(1 + segment);
  }
};

// By one thread, for constant data: fetches the block's part of the matrix, which is contiguous.
__device__ inline void start_block(const ResidentShared& shared, int first, int valid) {
  const TileArguments& t = shared.a.tile;
  init_barrier(shared.weights_full(), 1);
  for (int s = 0; s < t.segments; ++s) init_barrier(shared.rows_full(s), 1);
  show_barriers();
  const auto bytes = static_cast<uint32_t>(valid * t.row_tiles * kTileBytes);
  arrive_expecting(shared.weights_full(), bytes);
  copy_bulk(shared.weights(), t.weight + static_cast<int64_t>(first) * t.row_tiles * (kTileBytes / 16), bytes,
            shared.weights_full());
}

// By one thread. Rows that do not exist are zeros.
__device__ inline void copy_rows(const ResidentShared& shared) {
  const ResidentArguments& a = shared.a;
  const auto pair_bytes = static_cast<uint32_t>(2 * kTileBytes * a.plan.groups);
  for (int s = 0; s < a.tile.segments; ++s) {
    arrive_expecting(shared.rows_full(s), static_cast<uint32_t>(a.plan.segment_bytes));
    for (int pair = 0; pair < a.tile.segment_tiles / 2; ++pair)
      copy_rectangle(shared.rows(s) + static_cast<uint32_t>(pair) * pair_bytes, a.rows,
                     (s * a.tile.segment_tiles + pair * 2) * kTileInputs, 0, shared.rows_full(s));
  }
}

// The segments' sums of four results, added in order.
__device__ inline void add_segments(const ResidentArguments& a, const char* at, FourFloats& total) {
#pragma unroll
  for (float& value : total) value = 0.0f;
#pragma unroll
  for (int s = 0; s < kSegments; ++s)
    if (s < a.tile.segments) add_four(total, reinterpret_cast<const float*>(at + s * a.plan.segment_bytes));
}

// The sums of a segment of 64 rows, by a warpgroup. Missing rows may hold anything.
template <typename T, int kSums>
__device__ inline void multiply_segment(const ResidentArguments& a, uint32_t rows, uint32_t weights,
                                        float (&sums)[kSums]) {
  uint64_t x = operand_of_pairs_at(rows);
  uint64_t w = operand_at(weights, static_cast<uint32_t>(a.tile.row_tiles * kTileBytes));
  const auto pair_bytes = static_cast<uint32_t>(2 * kTileBytes * a.plan.groups);
  for (int tile = 0; tile < a.tile.segment_tiles; tile += 2, x += pair_bytes >> 4, w += 2 * kTileBytes >> 4) {
    pin(sums);
    begin_multiplications();
    multiply_pair<T>(sums, x, w, tile > 0);
    end_multiplications();
  }
  wait_for_multiplications<0>();
  pin(sums);
}

template <bool kPaired, int kOutputs>
__device__ inline void store_results(const ResidentArguments& a, const char* sums) {
  constexpr int kColumns = kOutputs / (kPaired ? 8 : 4), kPitch = kOutputs + kWideSumPadding;
  const TileArguments& t = a.tile;
  for (int item = static_cast<int>(threadIdx.x); item < static_cast<int>(t.rows) * kColumns;
       item += kResidentThreads) {
    const int row = item / kColumns, column = item % kColumns;
    const OutputPlace place{row, (static_cast<int>(blockIdx.x) * kColumns + column) * 4};
    if (place.n >= t.outputs) continue;
    const char* const at = sums + (row * kPitch + sums_of_four<kPaired>(column)) * 4;
    FourFloats total;
    add_segments(a, at, total);
    if constexpr (kPaired) {
      FourFloats up;
      add_segments(a, at + kTileOutputs * 4, up);
#pragma unroll
      for (int i = 0; i < 4; ++i) total[i] = swiglu_value(total[i], up[i]);
    } else {
      FourFloats before;
      load_before(t, place, before);
      finish_outputs(t, place, before, total);
    }
    store_outputs(t, place, total);
  }
}

template <typename T, int kTileRows>
__global__ void __launch_bounds__(kResidentThreads, 1)
    resident_kernel(const __grid_constant__ ResidentArguments a) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  constexpr int kOutputs = kTileRows * kTileOutputs, kPitch = kOutputs + kWideSumPadding;
  extern __shared__ __align__(1024) char shared_bytes[];
  const ResidentShared shared{a, shared_address(shared_bytes)};
  const int first = static_cast<int>(blockIdx.x) * kTileRows;
  if (threadIdx.x == 0) start_block(shared, first, min(kTileRows, a.tile.tile_rows - first));
  if (threadIdx.x == 32) prefetch_map(a.rows);
  __syncthreads();
  wait_for_inputs();
  if (threadIdx.x == 0) copy_rows(shared);
  __syncwarp();

  const int group = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 128), 0);
  wait_for_phase(shared.weights_full(), 0);
  for (int s = group; s < a.tile.segments; s += kResidentThreads / 128) {
    float sums[kOutputs / 2];
    wait_for_phase(shared.rows_full(s), 0);
    const auto from = static_cast<uint32_t>(s * a.tile.segment_tiles * kTileBytes);
    multiply_segment<T>(a, shared.rows(s), shared.weights() + from, sums);
    wait_for_group(group);  // the sums of one warp take the place of rows that the others multiply
    const int row = static_cast<int>(threadIdx.x % 128 / 32) * 16;
    if (row >= a.plan.groups * 8) continue;
    float* const to = reinterpret_cast<float*>(shared_bytes + s * a.plan.segment_bytes) + row * kPitch;
    share_sums<0, kTileRows>(to, kPitch, sums);
  }
  __syncthreads();
  if (a.tile.paired)
    store_results<true, kOutputs>(a, shared_bytes);
  else
    store_results<false, kOutputs>(a, shared_bytes);
#endif
}

}  // namespace shoal::ops::cuda
