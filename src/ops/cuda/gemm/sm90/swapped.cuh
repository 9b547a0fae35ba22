// Products of up to 192 rows of x and 8- or 4-bit weights on the tensor cores of sm_90a, in the layout and
// the order of matrix_layout.cuh: each step of decoding for many sequences reads the weights as they are
// kept.
//
// wgmma takes one of its operands from registers. Here that is the weights: each warp widens two rows of
// tiles at a time, as the instruction's 16 rows, and rows of x are its outputs; which operand is which
// changes no bits. One warp more brings weights, another rows of x, 64 inputs a stage. While the tensor cores
// multiply one stage, the warps widen the next. Of more than 64 rows each group of 64 has warps of its own.
#pragma once

#include <type_traits>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/fp8_tile.cuh"
#include "ops/cuda/gemm/operands/int4_tile.cuh"
#include "ops/cuda/gemm/operands/int8_tile.cuh"
#include "ops/cuda/gemm/operands/operand_map.cuh"
#include "ops/cuda/gemm/operands/product_epilogue.cuh"
#include "ops/cuda/gemm/sm90/stage_ring.cuh"
#include "ops/cuda/gemm/sm90/swapped_arguments.cuh"
#include "ops/cuda/ptx/mbarrier.cuh"
#include "ops/cuda/ptx/wgmma.cuh"

namespace shoal::ops::cuda {

// The work of a block, and the layout of its shared memory.
struct SwappedBlock {
  const SwappedArguments& a;
  char* shared;
  uint32_t base;
  int output_block, first_stage, segments;

  __device__ SwappedBlock(const SwappedArguments& arguments, char* bytes)
      : a(arguments),
        shared(bytes),
        base(static_cast<uint32_t>(__cvta_generic_to_shared(bytes))),
        output_block(static_cast<int>(blockIdx.x) % a.output_blocks),
        first_stage(static_cast<int>(blockIdx.x) / a.output_blocks * a.segment_stages),
        segments(a.sums ? 1 : kSegments) {}

  __device__ int segment() const { return first_stage / a.segment_stages; }
  __device__ int first_tile_row() const { return output_block * a.plan.warps * 2; }
  __device__ int all_stages() const { return segments * a.segment_stages; }

  __device__ int x_bytes() const { return a.plan.rows * 128; }  // of a stage
  __device__ uint32_t rows(int stage) const { return base + static_cast<uint32_t>(stage * x_bytes()); }
  // [row of tiles][records]
  __device__ int weights(int stage) const { return a.plan.weights_offset + stage * a.plan.stage_bytes; }
  __device__ uint32_t full(int stage) const {
    return base + static_cast<uint32_t>(a.plan.barriers_offset + stage * 8);
  }
  __device__ uint32_t empty(int stage) const { return full(a.plan.stages + stage); }

  // By one thread.
  __device__ void init_barriers() const {
    for (int stage = 0; stage < a.plan.stages; ++stage) {
      init_barrier(full(stage), 2);
      init_barrier(empty(stage), static_cast<uint32_t>(4 * a.plan.warpgroups()));
    }
    show_barriers();
  }

  // what(stage of the ring, stage of the product), one after the other as room becomes free.
  template <typename What>
  __device__ void for_stages(uint32_t bytes, const What& what) const {
    StageRing ring;
    for (int i = 0; i < all_stages(); ++i) {
      wait_for_phase(empty(ring.stage), ring.parity ^ 1);
      arrive_expecting(full(ring.stage), bytes);
      what(ring.stage, first_stage + i);
      ring.advance(a.plan.stages);
    }
  }
  // By one thread; constant data.
  __device__ void load_weights() const {
    for_stages(static_cast<uint32_t>(2 * a.plan.warps * a.plan.tile_row_bytes),
               [&](int stage, int of_product) {
                 const uint32_t to = base + static_cast<uint32_t>(weights(stage));
                 const int unit = of_product * (a.plan.tile_row_bytes / kWeightMapUnit);
                 if (a.once)
                   copy_rectangle_once(to, a.weights, unit, first_tile_row(), full(stage));
                 else
                   copy_rectangle(to, a.weights, unit, first_tile_row(), full(stage));
               });
  }
  // By one thread. Rows that do not exist are zeros.
  __device__ void load_rows() const {
    for_stages(static_cast<uint32_t>(x_bytes()), [&](int stage, int of_product) {
      copy_rectangle(rows(stage), a.x, of_product * 2 * kTileInputs, 0, full(stage));
    });
  }
};

// The two rows of tiles of a warp as operands.
template <typename T, TileWeights kWeights>
class SwappedOperands {
 public:
  static constexpr bool kNibbles = kWeights == TileWeights::int4;
  using Scale = std::conditional_t<kWeights == TileWeights::fp8, Fp8Scale<T>, TileScale<T>>;  // of 8 bits
  static constexpr float kUnit = kNibbles ? NibbleScale<T>::kUnit : Scale::kUnit;

  // warp: of the block. One that has no rows of tiles reads those of the last that has, to no use.
  __device__ SwappedOperands(const SwappedBlock& block, int warp)
      : first_(2 * min(warp, block.a.plan.warps - 1)),
        tile_row_bytes_(block.a.plan.tile_row_bytes),
        shift_(block.a.form.shift) {
    if constexpr (!kNibbles) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int tile_row = min(block.first_tile_row() + first_ + r, block.a.tile_rows - 1);
        scales_[r] = Scale(__ldg(block.a.scales + tile_row * kTileOutputs + lane() / 4));
      }
    }
  }

  // Those of a stage: four multiplications of 16 inputs, in each the four words of a lane.
  __device__ void load(const char* weights, uint32_t (&operands)[16]) const {
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) {
      const uint4 low = operand(weights, 0, tile), high = operand(weights, 1, tile);
      uint32_t* const to = operands + 8 * tile;
      to[0] = low.x, to[1] = high.x, to[2] = low.y, to[3] = high.y;
      to[4] = low.z, to[5] = high.z, to[6] = low.w, to[7] = high.w;
    }
  }

 private:
  static __device__ int lane() { return static_cast<int>(threadIdx.x % 32); }

  __device__ uint4 operand(const char* weights, int r, int tile) const {
    const char* const row = weights + (first_ + r) * tile_row_bytes_;
    if constexpr (kNibbles) {
      const int record = tile >> shift_, within = tile - (record << shift_);
      const char* const head = row + record * (kInt4HeadBytes + (kInt4TileBytes << shift_));
      const NibbleScale<T> scale(*reinterpret_cast<const uint32_t*>(head + lane() / 4 * 4));
      return scale.operand(
          *reinterpret_cast<const uint32_t*>(head + kInt4HeadBytes + within * kInt4TileBytes + lane() * 4));
    } else {
      return scales_[r].operand(*reinterpret_cast<const uint2*>(row + tile * kInt8TileBytes + lane() * 8));
    }
  }

  int first_, tile_row_bytes_, shift_;
  Scale scales_[kNibbles ? 1 : 2];
};

// One of the warps that multiply.
template <typename T, TileWeights kWeights, int kRows>
class SwappedConsumer {
 public:
  using Sums = float[kRows / 2];

  // warp: among those of its group of rows.
  __device__ SwappedConsumer(const SwappedBlock& block, int row_group, int warp)
      : block_(block), operands_(block, warp), first_row_(row_group * 64) {}

  // sums = those of the next segment.
  __device__ void run_segment(Sums& sums) {
    uint32_t even[16], odd[16];  // one is widened while the other is multiplied
    int stage = 0;
    for (; stage + 1 < block_.a.segment_stages; stage += 2) {
      multiply(sums, even, stage > 0);
      multiply(sums, odd, 1);
    }
    if (stage < block_.a.segment_stages) multiply(sums, even, stage > 0);
    wait_for_multiplications<0>();
    pin(sums);
    release();
  }

 private:
  __device__ void multiply(Sums& sums, uint32_t (&weights)[16], uint32_t add) {
    wait_for_phase(block_.full(ring_.stage), ring_.parity);
    operands_.load(block_.shared + block_.weights(ring_.stage), weights);
    const uint64_t x =
        operand_of_pairs_at(block_.rows(ring_.stage) + static_cast<uint32_t>(first_row_ * 128));
    pin(sums);
    begin_multiplications();
    multiply_registers<T>(sums, weights, x, add);
    multiply_registers<T>(sums, weights + 4, x + kSecondHalf, 1);
    multiply_registers<T>(sums, weights + 8, x + kSecondTile, 1);
    multiply_registers<T>(sums, weights + 12, x + kSecondTile + kSecondHalf, 1);
    end_multiplications();
    wait_for_multiplications<1>();
    release();
    last_ = ring_.stage;
    ring_.advance(block_.a.plan.stages);
  }
  // The last stage, whose multiplications are done.
  __device__ void release() {
    if (last_ >= 0 && threadIdx.x % 32 == 0) arrive(block_.empty(last_));
    last_ = -1;
  }

  const SwappedBlock& block_;
  SwappedOperands<T, kWeights> operands_;
  int first_row_;
  int last_ = -1;
  StageRing ring_;
};

// what(row of x, sum of the first row of tiles, of the second) of what a lane has: lane 4 g + q of every
// eight rows those of rows 2 q and 2 q + 1, for output g of the rows of tiles.
template <int kSums, typename What>
__device__ inline void for_rows(int64_t first, int64_t rows, const float (&totals)[kSums], const What& what) {
#pragma unroll
  for (int i = 0; i < kSums / 2; ++i) {
    const int64_t row = first + i / 2 * 8 + threadIdx.x % 4 * 2 + i % 2;
    if (row < rows) what(row, totals[i / 2 * 4 + i % 2], totals[i / 2 * 4 + 2 + i % 2]);
  }
}

// A warp's sums -> those of the segment, or y.
template <int kRows>
__device__ inline void store_swapped(const SwappedBlock& block, int first_row, int warp,
                                     const float (&totals)[kRows / 2]) {
  const SwappedArguments& a = block.a;
  const int tile_row = block.first_tile_row() + 2 * warp;
  const int n = tile_row / (a.paired ? 2 : 1) * kTileOutputs + static_cast<int>(threadIdx.x % 32 / 4);
  if (warp >= a.plan.warps || n >= a.outputs) return;
  if (a.paired)
    return for_rows(first_row, a.rows, totals,
                    [&](int64_t row, float gate, float up) { store_swiglu(a.epilogue, row, n, gate, up); });
  const bool both = n + kTileOutputs < a.outputs;
  if (a.bare) {
    float* const to =
        a.sums ? a.sums + block.segment() * a.rows * a.outputs + n : static_cast<float*>(a.epilogue.y) + n;
    const int64_t pitch = a.sums ? a.outputs : a.epilogue.y_stride;
    return for_rows(first_row, a.rows, totals, [&](int64_t row, float low, float high) {
      to[row * pitch] = low;
      if (both) to[row * pitch + kTileOutputs] = high;
    });
  }
  for_rows(first_row, a.rows, totals, [&](int64_t row, float low, float high) {
    store_product(a.epilogue, row, n, low);
    if (both) store_product(a.epilogue, row, n + kTileOutputs, high);
  });
}

// What the warps that multiply do.
template <typename T, TileWeights kWeights, int kRows>
__device__ inline void make_swapped(const SwappedBlock& block, int warp_of_block) {
  const int warps = 4 * block.a.plan.warpgroups() / block.a.plan.row_groups();
  const int row_group = warp_of_block / warps, warp = warp_of_block % warps;
  constexpr float kUnit = SwappedOperands<T, kWeights>::kUnit;
  SwappedConsumer<T, kWeights, kRows> consumer(block, row_group, warp);
  wait_for_inputs();
  float totals[kRows / 2] = {};
  for (int segment = 0; segment < block.segments; ++segment) {
    float sums[kRows / 2];
    consumer.run_segment(sums);
#pragma unroll
    for (int i = 0; i < kRows / 2; ++i) totals[i] = __fadd_rn(totals[i], __fmul_rn(sums[i], kUnit));
  }
  store_swapped<kRows>(block, row_group * 64, warp, totals);
}

template <typename T, TileWeights kWeights, int kRows>
__global__ void __launch_bounds__(32 * (kSwappedWarps + 4), 1)
    swapped_kernel(const __grid_constant__ SwappedArguments a) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char shared_bytes[];
  const SwappedBlock block(a, shared_bytes);
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0), loader = 4 * a.plan.warpgroups();
  const bool leads = threadIdx.x % 32 == 0;
  if (threadIdx.x == 0) block.init_barriers();
  if (warp == loader && leads) prefetch_map(a.x);
  __syncthreads();
  if (warp < loader) {
    take_registers<kSwappedRegisters>();
    make_swapped<T, kWeights, kRows>(block, warp);
  } else {
    give_registers<kSwappedLoaderRegisters>();
    if (warp == loader && leads) block.load_weights();
    __syncwarp();
    wait_for_inputs();
    if (warp == loader + 1 && leads) block.load_rows();
  }
#endif
}

}  // namespace shoal::ops::cuda
