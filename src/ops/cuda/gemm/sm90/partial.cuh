// The segments' sums of products of 17 to 256 rows of x and 16-bit weights of few outputs on the tensor cores
// of sm_90a, in the layout and the order of matrix_layout.cuh: for the products after attention and at the
// end of a layer, whose sums the next norm adds up (residual.cu).
//
// A block has one whole segment of its inputs in its shared memory, without a ring. Rows arrive 64 inputs at
// a time, each copy with its own barrier. Sums are stored as whole lines.
#pragma once

#include <cuda.h>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/sm90/line_store.cuh"
#include "ops/cuda/gemm/sm90/partial_product.h"
#include "ops/cuda/gemm/sm90/resident_mma.cuh"
#include "ops/cuda/ptx/mbarrier.cuh"
#include "ops/cuda/ptx/shared_address.cuh"

namespace shoal::ops::cuda {

struct PartialArguments {
  CUtensorMap x;  // two tiles of the rows of a block
  const uint4* weight;
  float* sums;  // [segment][row][outputs]
  PartialPlan plan;
  int64_t rows;
  int outputs, row_tiles;
  int segment_tiles;  // an even number
  int output_blocks;
};

// The work of a block, and the layout of its shared memory.
template <int kRowGroups, int kTileRows>
struct PartialBlock {
  static constexpr int kRows = 64 * kRowGroups, kThreads = 128 * kRowGroups, kWarps = kThreads / 32;
  static constexpr int kOutputs = kTileRows * kTileOutputs;

  const PartialArguments& a;
  uint32_t base;
  int output_block, segment, row_block;

  __device__ PartialBlock(const PartialArguments& arguments, uint32_t shared)
      : a(arguments),
        base(shared),
        output_block(static_cast<int>(blockIdx.x) % a.output_blocks),
        segment(static_cast<int>(blockIdx.x) / a.output_blocks % kSegments),
        row_block(static_cast<int>(blockIdx.x) / a.output_blocks / kSegments) {}

  __device__ uint32_t rows(int pair) const { return base + static_cast<uint32_t>(pair * kRows * 128); }
  __device__ uint32_t weights() const { return base + static_cast<uint32_t>(a.plan.weights_offset); }
  __device__ uint32_t weights_full() const { return base + static_cast<uint32_t>(a.plan.barriers_offset); }
  __device__ uint32_t rows_full(int pair) const {
    return weights_full() + 8 * static_cast<uint32_t>(1 + pair);
  }

  // Fetches constant data; by all threads, up to a barrier of the block.
  __device__ void start_weights() const {
    const int warp = static_cast<int>(threadIdx.x / 32);
    const auto row_bytes = static_cast<uint32_t>(a.segment_tiles * kTileBytes);
    if (threadIdx.x == 0) {
      for (int i = 0; i <= a.segment_tiles / 2; ++i)
        init_barrier(weights_full() + 8 * static_cast<uint32_t>(i), 1);
      show_barriers();
      prefetch_map(a.x);
      arrive_expecting(weights_full(), kTileRows * row_bytes);
    }
    __syncthreads();
    if (threadIdx.x % 32 != 0) return;
    for (int r = warp; r < kTileRows; r += kWarps) {
      const int64_t tile =
          static_cast<int64_t>(output_block * kTileRows + r) * a.row_tiles + segment * a.segment_tiles;
      copy_bulk(weights() + static_cast<uint32_t>(r) * row_bytes, a.weight + tile * (kTileBytes / 16),
                row_bytes, weights_full());
    }
  }

  // By one thread. Rows that do not exist are zeros.
  __device__ void start_rows() const {
    for (int pair = 0; pair < a.segment_tiles / 2; ++pair) {
      arrive_expecting(rows_full(pair), kRows * 128);
      copy_rectangle(rows(pair), a.x, (segment * a.segment_tiles + pair * 2) * kTileInputs, row_block * kRows,
                     rows_full(pair));
    }
  }

  // Sums of 64 rows, by a warpgroup.
  template <typename T>
  __device__ void multiply(int group, float (&sums)[kOutputs / 2]) const {
    uint64_t b = operand_at(weights(), static_cast<uint32_t>(a.segment_tiles * kTileBytes));
    wait_for_phase(weights_full(), 0);
    for (int pair = 0; pair < a.segment_tiles / 2; ++pair, b += 2 * kTileBytes >> 4) {
      wait_for_phase(rows_full(pair), 0);
      pin(sums);
      begin_multiplications();
      multiply_pair<T>(sums, operand_of_pairs_at(rows(pair) + static_cast<uint32_t>(group * 64 * 128)), b,
                       pair > 0);
      end_multiplications();
    }
    wait_for_multiplications<0>();
    pin(sums);
  }

  // As multiply_wide leaves them; through the warp's rows, once its group has multiplied them.
  __device__ void store(int group, const float (&sums)[kOutputs / 2]) const {
    const int first = group * 64 + static_cast<int>(threadIdx.x % 128 / 32) * 16, pairs = a.segment_tiles / 2;
    const int64_t row = static_cast<int64_t>(row_block) * kRows + first;
    float* const to = a.sums + (segment * a.rows + row) * a.outputs + output_block * kOutputs;
    wait_for_group(group);
#pragma unroll
    for (int piece = 0; piece < kOutputs / kLineOutputs; ++piece) {
      const uint32_t shared = rows(piece % pairs) + static_cast<uint32_t>(first * kLineBytes);
      share_floats(shared, sums, piece * (kLineOutputs / kTileOutputs));
      store_lines<kLineVectors>(shared, reinterpret_cast<char*>(to + piece * kLineOutputs),
                                int64_t{4} * a.outputs, a.rows - row);
    }
  }
};

template <typename T, int kRowGroups, int kTileRows>
__global__ void __launch_bounds__(128 * kRowGroups)
    partial_kernel(const __grid_constant__ PartialArguments a) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char shared_bytes[];
  const PartialBlock<kRowGroups, kTileRows> block(a, shared_address(shared_bytes));
  block.start_weights();
  __syncwarp();
  wait_for_inputs();
  if (threadIdx.x == 0) block.start_rows();
  __syncwarp();
  const int group = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 128), 0);
  float sums[kTileRows * kTileOutputs / 2];
  block.template multiply<T>(group, sums);
  block.store(group, sums);
#endif
}

}  // namespace shoal::ops::cuda
