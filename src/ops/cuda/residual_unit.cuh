// Whole residual units in one kernel, for 16-bit weights and the tensor cores of sm_90a:
// y = x + conv1(snake(conv7(snake(x)))).
//
// A block goes through pieces of 128 rows. Its row warps bring a piece, and the rows that it looks back at,
// through the snake into shared memory, every eight channels on their own: [8 channels][row], 16 bytes a row.
// So a tap is the same operand begun some rows later, and nothing is stored once for each tap. Two
// warpgroups multiply, 64 rows each: the wide convolution, whose result passes through the second snake in
// registers and is, there, the operand of the narrow one.
//
// Outputs are made 96 at a time. The weights of 96 channels stay in shared memory for all pieces; those of
// more pass through a ring of stages. Sums run in the order of matrix_layout.cuh: the bits are those of the
// two products one by one.
#pragma once

#include "ops/cuda/conv_channels.cuh"
#include "ops/cuda/conv_pieces.cuh"
#include "ops/cuda/product_epilogue.cuh"
#include "ops/cuda/residual_unit_load.cuh"
#include "ops/cuda/tile_store.cuh"
#include "ops/cuda/wide_mma.cuh"

namespace shoal::ops::cuda {

// One of the two warpgroups that multiply.
template <typename T, int kChannels>
class UnitConsumer {
 public:
  using Sizes = UnitSizes<kChannels>;

  __device__ UnitConsumer(const UnitArguments& arguments, const UnitShared<kChannels>& shared, int group)
      : a_(arguments),
        shared_(shared),
        group_(group),
        row_(group * 64 + static_cast<int>(threadIdx.x % 128 / 32) * 16 +
             static_cast<int>(threadIdx.x % 32 / 4)),
        column_(static_cast<int>(threadIdx.x % 4) * 2) {}

  __device__ void run() {
    Ring<Sizes::kBuffers> buffers;
    for (int piece = static_cast<int>(blockIdx.x); piece < a_.pieces; piece += static_cast<int>(gridDim.x)) {
      const PieceRows rows = rows_of_piece(a_.source, piece, kUnitRows);
      if (rows.count == 0) break;
      wait_for_phase(shared_.barriers().rows_full(buffers.at), buffers.parity);
      uint32_t between[Sizes::kParts * kPartBetween];
#pragma unroll
      for (int part = 0; part < Sizes::kParts; ++part)
        convolve_wide(shared_.rows(buffers.at), part, between + part * kPartBetween);
      release(shared_.barriers().rows_empty(buffers.at));
      buffers.advance();
      const int64_t first = a_.source.begin_of(rows.sequence) + rows.first;
#pragma unroll 1
      for (int part = 0; part < Sizes::kParts; ++part)
        convolve_narrow(between, part, first, rows.count - rows.first);
    }
  }

 private:
  static constexpr int kPartBetween = Sizes::kSums / 2;  // registers, two channels each
  static constexpr int kSegmentTiles =                   // of the narrow convolution
      (Sizes::kTapTiles + kSegments - 1) / kSegments;

  using Sums = float[Sizes::kSums];

  // One part of what the wide convolution makes of the rows, through the second snake.
  __device__ void convolve_wide(uint32_t rows, int part, uint32_t* between) {
    Sums totals = {}, sums;
    uint64_t tap_rows = UnitShared<kChannels>::rows_operand(rows + static_cast<uint32_t>(group_ * 64 * 16));
#pragma unroll 1
    for (int tap = 0; tap < kUnitTaps; ++tap, tap_rows += static_cast<uint64_t>(a_.dilation)) {
      multiply_tap(tap_rows, sums);
#pragma unroll
      for (int i = 0; i < Sizes::kSums; ++i) totals[i] = __fadd_rn(totals[i], sums[i]);
    }
    snake_and_round(totals, part, between);
  }

  // sums = one tap's products.
  __device__ void multiply_tap(uint64_t a, Sums& sums) {
    int last = -1;  // stage whose multiplications may be unfinished
#pragma unroll 1
    for (int i = 0; i < Sizes::kTapStages; ++i) {
      wait_for_phase(shared_.barriers().weights_full(ring_.stage), ring_.parity);
      uint64_t b = operand_at(shared_.weights(ring_.stage), Sizes::kStageTiles * kTileBytes);
      pin(sums);
      begin_multiplications();
#pragma unroll
      for (int tile = 0; tile < Sizes::kStageTiles; ++tile) {
        multiply_wide<T>(sums, a, b, tile == 0 ? static_cast<uint32_t>(i) : 1);
        multiply_wide<T>(sums, a + Sizes::kSixteenChannels, b + kSecondHalf, 1);
        a += 2 * Sizes::kSixteenChannels, b += kTileBytes >> 4;
      }
      end_multiplications();
      if (last >= 0) {
        wait_for_multiplications<1>();
        release_weights(last);
      }
      last = ring_.stage;
      ring_.advance();
    }
    wait_for_multiplications<0>();
    pin(sums);
    release_weights(last);
  }

  // The registers of sums lie as those of an operand do, in pairs of channels.
  __device__ void snake_and_round(const Sums& totals, int part, uint32_t* between) {
    const UnitFactors<kChannels>& f = shared_.factors();
#pragma unroll
    for (int n = 0; n < kUnitOutputs / 8; ++n) {
      const int c = part * kUnitOutputs + 8 * n + column_;
      const float2 bias = pair_at(f.wide_bias + c), alpha = pair_at(f.narrow_alpha + c),
                   inverse = pair_at(f.narrow_inverse + c);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float low = epilogue_value(totals[4 * n + 2 * i], bias.x, 1.0f, 0.0f, Activation::none);
        const float high = epilogue_value(totals[4 * n + 2 * i + 1], bias.y, 1.0f, 0.0f, Activation::none);
        const float x = snake_value(low, alpha.x, inverse.x), y = snake_value(high, alpha.y, inverse.y);
        between[2 * n + i] = rounded_pair(kDType, x, y);
      }
    }
  }

  // One part of the outputs of the narrow convolution, and x with them -> y.  first: the piece's row of x;
  // count: how many follow, at least.
  __device__ void convolve_narrow(const uint32_t (&between)[Sizes::kParts * kPartBetween], int part,
                                  int64_t first, int count) {
    const int64_t at = (first + row_) * kChannels + part * kUnitOutputs + column_;
    Held held;
    if constexpr (kHoldsEarly) load_held(at, count, held);
    Sums totals = {}, sums;
#pragma unroll
    for (int i = 0; i < Sizes::kTapStages; ++i) {
      wait_for_phase(shared_.barriers().weights_full(ring_.stage), ring_.parity);
      const uint64_t b = operand_at(shared_.weights(ring_.stage), Sizes::kStageTiles * kTileBytes);
#pragma unroll
      for (int j = 0; j < Sizes::kStageTiles; ++j) {
        const int tile = i * Sizes::kStageTiles + j;
        pin(sums);
        begin_multiplications();
        multiply_registers<T>(sums, &between[tile * 8], b + j * (kTileBytes >> 4),
                              tile % kSegmentTiles == 0 ? 0 : 1);
        multiply_registers<T>(sums, &between[tile * 8 + 4], b + j * (kTileBytes >> 4) + kSecondHalf, 1);
        end_multiplications();
        wait_for_multiplications<0>();
        pin(sums);
        if (tile % kSegmentTiles != kSegmentTiles - 1) continue;
#pragma unroll
        for (int k = 0; k < Sizes::kSums; ++k) totals[k] = __fadd_rn(totals[k], sums[k]);
      }
      release_weights(ring_.stage);
      ring_.advance();
    }
#pragma unroll
    for (int n = 0; n < kUnitOutputs / 8; n += kHeldTogether) {
      if constexpr (!kHoldsEarly) load_held(at + 8 * n, count, held);
      store_with_held(at, n, count, part, totals, held);
    }
  }

  // What x holds where the thread's sums go, some places of eight channels at a time. Where there are
  // registers for all of it, it is asked for before the products.
  static constexpr bool kHoldsEarly = Sizes::kParts == 1;
  static constexpr int kHeldTogether = kUnitOutputs / 8 / (kHoldsEarly ? 1 : Sizes::kParts == 2 ? 2 : 3);
  using Held = float2[2 * kHeldTogether];

  __device__ void load_held(int64_t at, int count, Held& held) const {
#pragma unroll
    for (int n = 0; n < kHeldTogether; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        held[2 * n + i] = {};
        if (row_ + 8 * i < count) held[2 * n + i] = pair_at(a_.source.x + at + 8 * i * kChannels + 8 * n);
      }
  }
  // first: the eight channels that held begins with.
  __device__ void store_with_held(int64_t at, int first, int count, int part, const Sums& totals,
                                  const Held& held) const {
    const float* const biases = shared_.factors().narrow_bias + part * kUnitOutputs + column_;
#pragma unroll
    for (int k = 0; k < kHeldTogether; ++k) {
      const int n = first + k;
      const float2 bias = pair_at(biases + 8 * n);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (row_ + 8 * i < count)
          store_pair(at + 8 * i * kChannels + 8 * n, totals[4 * n + 2 * i], totals[4 * n + 2 * i + 1], bias,
                     held[2 * k + i]);
    }
  }
  __device__ void store_pair(int64_t at, float low, float high, float2 bias, float2 before) const {
    *reinterpret_cast<float2*>(a_.y + at) =
        make_float2(epilogue_value(low, bias.x, 1.0f, before.x, Activation::none),
                    epilogue_value(high, bias.y, 1.0f, before.y, Activation::none));
  }
  __device__ static float2 pair_at(const float* values) { return *reinterpret_cast<const float2*>(values); }
  __device__ void release(uint32_t barrier) const {
    if (threadIdx.x % 32 == 0) arrive(barrier);
  }
  __device__ void release_weights(int stage) const {
    if constexpr (!Sizes::kResident) release(shared_.barriers().weights_empty(stage));
  }

  static constexpr DType kDType = std::is_same_v<T, __nv_bfloat16> ? DType::bf16 : DType::f16;

  const UnitArguments& a_;
  const UnitShared<kChannels>& shared_;
  const int group_, row_, column_;  // of the piece, and of eight outputs: where the thread's sums begin
  UnitRing<kChannels> ring_;
};

template <typename T, int kChannels>
__global__ void __launch_bounds__(UnitSizes<kChannels>::kThreads, 1)
    unit_kernel(const __grid_constant__ UnitArguments arguments) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Sizes = UnitSizes<kChannels>;
  extern __shared__ __align__(1024) char shared_bytes[];
  const UnitShared<kChannels> shared(shared_bytes);
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
  if (threadIdx.x == 0) shared.barriers().init(Sizes::kConsumerWarps, 32 * Sizes::kRowWarps);
  load_factors(arguments, shared);
  __syncthreads();
  if (warp < Sizes::kLoadingWarps) {
    give_registers<Sizes::kLoaderRegisters>();
    if constexpr (Sizes::kResident) {
      if (threadIdx.x == 0) load_resident_weights(arguments, shared);
      __syncwarp();
      wait_for_inputs();
      load_pieces<T>(arguments, shared, static_cast<int>(threadIdx.x));
      if (warp == 0) wait_for_resident_weights(shared);
    } else {
      wait_for_inputs();
      if (warp == 0)
        stream_weights(arguments, shared);
      else
        load_pieces<T>(arguments, shared, static_cast<int>(threadIdx.x) - 32);
    }
  } else {
    take_registers<Sizes::kConsumerRegisters>();
    wait_for_inputs();
    UnitConsumer<T, kChannels>(arguments, shared, (warp - Sizes::kLoadingWarps) / 4).run();
  }
#endif
}

}  // namespace shoal::ops::cuda
