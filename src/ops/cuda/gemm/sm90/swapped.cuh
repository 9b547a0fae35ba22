// Products of 8- or 4-bit weights on the tensor cores of sm_90a, in the layout and the order of
// matrix_layout.cuh, which read the weights as they are kept.
//
// wgmma takes one of its operands from registers. Here that is the weights: each warp widens two rows of
// tiles at a time, as the instruction's 16 rows, and rows of x are its outputs; which operand is which
// changes no bits. One warp more brings weights, another rows of x, 64 inputs a stage. While the tensor cores
// multiply one stage, the warps widen the next. While a block has all rows, each group of 64 has warps of its
// own; of more rows blocks make one result after the other, and warps have up to 160.
#pragma once

#include <type_traits>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/fp8_tile.cuh"
#include "ops/cuda/gemm/operands/int4_tile.cuh"
#include "ops/cuda/gemm/operands/int8_tile.cuh"
#include "ops/cuda/gemm/operands/operand_map.cuh"
#include "ops/cuda/gemm/operands/product_epilogue.cuh"
#include "ops/cuda/gemm/operands/tile_store.cuh"
#include "ops/cuda/gemm/sm90/stage_ring.cuh"
#include "ops/cuda/gemm/sm90/swapped_arguments.cuh"
#include "ops/cuda/ptx/mbarrier.cuh"
#include "ops/cuda/ptx/mma.cuh"
#include "ops/cuda/ptx/shared_address.cuh"
#include "ops/cuda/ptx/wgmma.cuh"

namespace shoal::ops::cuda {

// A result of a block, one after the other. Neighbouring blocks have the same weights, and other rows.
struct SwappedResult {
  const SwappedArguments& a;
  int index;
  int first_row, first_tile_row, segment;  // segment: the first

  __device__ explicit SwappedResult(const SwappedArguments& arguments)
      : a(arguments), index(static_cast<int>(blockIdx.x)) {
    find();
  }
  __device__ bool exists() const { return index < a.results; }
  __device__ void next() {
    index += static_cast<int>(gridDim.x);
    if (exists()) find();
  }
  __device__ int segments() const { return a.sums ? 1 : kSegments; }

 private:
  // Without divisions where blocks have all rows: they would delay the first copies.
  __device__ void find() {
    const int block = a.row_blocks == 1 ? index : index / a.row_blocks;
    first_row = (index - block * a.row_blocks) * a.plan.rows;
    segment = a.sums ? block / a.output_blocks : 0;
    first_tile_row = (block - segment * a.output_blocks) * a.plan.warps * 2;
  }
};

// The layout of the shared memory of a block.
struct SwappedBlock {
  const SwappedArguments& a;
  char* shared;
  uint32_t base;

  __device__ SwappedBlock(const SwappedArguments& arguments, char* bytes)
      : a(arguments), shared(bytes), base(shared_address(bytes)) {}

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

  // what(result, stage of the ring, stage of the product), one after the other as room becomes free.
  template <typename What>
  __device__ void for_stages(uint32_t bytes, const What& what) const {
    StageRing ring;
    for (SwappedResult result(a); result.exists(); result.next()) {
      const int first = result.segment * a.segment_stages;
      for (int i = 0; i < result.segments() * a.segment_stages; ++i) {
        wait_for_phase(empty(ring.stage), ring.parity ^ 1);
        arrive_expecting(full(ring.stage), bytes);
        what(result, ring.stage, first + i);
        ring.advance(a.plan.stages);
      }
    }
  }
  // By one thread; constant data.
  __device__ void load_weights() const {
    for_stages(static_cast<uint32_t>(2 * a.plan.warps * a.plan.tile_row_bytes),
               [&](const SwappedResult& result, int stage, int of_product) {
                 const uint32_t to = base + static_cast<uint32_t>(weights(stage));
                 const int unit = of_product * (a.plan.tile_row_bytes / kWeightMapUnit);
                 if (a.once)
                   copy_rectangle_once(to, a.weights, unit, result.first_tile_row, full(stage));
                 else
                   copy_rectangle(to, a.weights, unit, result.first_tile_row, full(stage));
               });
  }
  // By one thread. Rows that do not exist are zeros.
  __device__ void load_rows() const {
    for_stages(static_cast<uint32_t>(x_bytes()), [&](const SwappedResult& result, int stage, int of_product) {
      copy_rectangle(rows(stage), a.x, of_product * 2 * kTileInputs, result.first_row, full(stage));
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
  __device__ SwappedOperands(const SwappedArguments& a, int warp)
      : first_(2 * min(warp, a.plan.warps - 1)),
        tile_row_bytes_(a.plan.tile_row_bytes),
        shift_(a.form.shift) {}

  __device__ void begin(const SwappedResult& result) {
    if constexpr (!kNibbles) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int tile_row = min(result.first_tile_row + first_ + r, result.a.tile_rows - 1);
        scales_[r] = Scale(__ldg(result.a.scales + tile_row * kTileOutputs + lane() / 4));
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
      : block_(block), operands_(block.a, warp), first_row_(row_group * kRows) {}

  __device__ void begin(const SwappedResult& result) { operands_.begin(result); }

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

// what(row of x, sum of the first row of tiles, of the second, place) of what a lane has: lane 4 g + q of
// every eight rows those of rows 2 q and 2 q + 1, for output g of the rows of tiles.
template <int kFirst, int kCount, int kSums, typename What>
__device__ inline void for_rows(int64_t first, int64_t rows, const float (&totals)[kSums], const What& what) {
#pragma unroll
  for (int i = kFirst; i < kFirst + kCount; ++i) {
    const int64_t row = first + i / 2 * 8 + threadIdx.x % 4 * 2 + i % 2;
    if (row < rows) what(row, totals[i / 2 * 4 + i % 2], totals[i / 2 * 4 + 2 + i % 2], i - kFirst);
  }
}

// Sums with all that happens to them -> y. The values of several rows that they are added to are asked for
// together. n: the output of the first row of tiles.
template <int kFirst, int kSums>
__device__ inline void store_some_rows(const ProductEpilogue& e, int64_t first, int64_t rows, int n,
                                       bool both, const float (&bias)[2], const float (&scale)[2],
                                       const float (&totals)[kSums]) {
  constexpr int kTogether = kSums < 16 ? kSums / 2 : 8;
  float before[2 * kTogether] = {};
  if (e.accumulate)
    for_rows<kFirst, kTogether>(first, rows, totals, [&](int64_t row, float, float, int i) {
      const float* const from = static_cast<const float*>(e.y) + row * e.y_stride + n;
      before[2 * i] = from[0];
      if (both) before[2 * i + 1] = from[kTileOutputs];
    });
  for_rows<kFirst, kTogether>(first, rows, totals, [&](int64_t row, float low, float high, int i) {
    const int64_t at = row * e.y_stride + n;
    store_value(e.y, at, e.y_dtype, epilogue_value(low, bias[0], scale[0], before[2 * i], Activation::none));
    if (both)
      store_value(e.y, at + kTileOutputs, e.y_dtype,
                  epilogue_value(high, bias[1], scale[1], before[2 * i + 1], Activation::none));
  });
  if constexpr (kFirst + kTogether < kSums / 2)
    store_some_rows<kFirst + kTogether>(e, first, rows, n, both, bias, scale, totals);
}

// Pairs of a warp's rows of tiles -> 16-bit y, of which every lane then has two adjacent outputs.
template <int kSums>
__device__ inline void store_swiglu_pairs(const SwappedArguments& a, int64_t first, int warp, int tile_row,
                                          const float (&totals)[kSums]) {
  if (warp >= a.plan.warps || tile_row >= a.tile_rows) return;
  const int lane = static_cast<int>(threadIdx.x % 32);
  auto* const to = static_cast<uint16_t*>(a.epilogue.y) + tile_row / 2 * kTileOutputs + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < kSums / 4; ++i) {
    const float low = swiglu_value(totals[4 * i], totals[4 * i + 2]),
                high = swiglu_value(totals[4 * i + 1], totals[4 * i + 3]);
    const uint32_t two = transposed(rounded_pair(a.epilogue.y_dtype, low, high));
    const int64_t row = first + i * 8 + lane / 4;
    if (row < a.rows) *reinterpret_cast<uint32_t*>(to + row * a.epilogue.y_stride) = two;
  }
}

// A warp's sums -> those of the segment, or y.
template <int kRows>
__device__ inline void store_swapped(const SwappedResult& result, int first_row, int warp,
                                     const float (&totals)[kRows / 2]) {
  const SwappedArguments& a = result.a;
  const ProductEpilogue& e = a.epilogue;
  const int tile_row = result.first_tile_row + 2 * warp;
  const int n = tile_row / (a.paired ? 2 : 1) * kTileOutputs + static_cast<int>(threadIdx.x % 32 / 4);
  if (a.paired && a.in_pairs) return store_swiglu_pairs(a, first_row, warp, tile_row, totals);
  if (warp >= a.plan.warps || n >= a.outputs) return;
  if (a.paired)
    return for_rows<0, kRows / 4>(first_row, a.rows, totals, [&](int64_t row, float gate, float up, int) {
      store_swiglu(e, row, n, gate, up);
    });
  const bool both = n + kTileOutputs < a.outputs;
  if (a.bare) {
    float* const to =
        a.sums ? a.sums + result.segment * a.rows * a.outputs + n : static_cast<float*>(e.y) + n;
    const int64_t pitch = a.sums ? a.outputs : e.y_stride;
    return for_rows<0, kRows / 4>(first_row, a.rows, totals, [&](int64_t row, float low, float high, int) {
      to[row * pitch] = low;
      if (both) to[row * pitch + kTileOutputs] = high;
    });
  }
  const float bias[] = {e.bias ? e.bias[n] : 0.0f, e.bias && both ? e.bias[n + kTileOutputs] : 0.0f};
  const float scale[] = {e.scale ? e.scale[n] : 1.0f, e.scale && both ? e.scale[n + kTileOutputs] : 1.0f};
  store_some_rows<0>(e, first_row, a.rows, n, both, bias, scale, totals);
}

// What the warps that multiply do.
template <typename T, TileWeights kWeights, int kRows>
__device__ inline void make_swapped(const SwappedBlock& block, int warp_of_block) {
  const int warps = 4 * block.a.plan.warpgroups() / block.a.plan.row_groups;
  const int row_group = warp_of_block / warps, warp = warp_of_block % warps;
  constexpr float kUnit = SwappedOperands<T, kWeights>::kUnit;
  SwappedConsumer<T, kWeights, kRows> consumer(block, row_group, warp);
  wait_for_inputs();
  for (SwappedResult result(block.a); result.exists(); result.next()) {
    consumer.begin(result);
    float totals[kRows / 2] = {};
    for (int segment = 0; segment < result.segments(); ++segment) {
      float sums[kRows / 2];
      consumer.run_segment(sums);
#pragma unroll
      for (int i = 0; i < kRows / 2; ++i) totals[i] = __fmaf_rn(sums[i], kUnit, totals[i]);
    }
    store_swapped<kRows>(result, result.first_row + row_group * kRows, warp, totals);
  }
}

template <typename T, TileWeights kWeights, int kRows>
__global__ void __launch_bounds__(swapped_threads(kRows), 1)
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
    take_registers<swapped_registers(kRows)>();
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
