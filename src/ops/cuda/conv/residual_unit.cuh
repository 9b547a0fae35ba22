// Whole residual units in one kernel, for 16-bit weights and the tensor cores of sm_90a:
// y = x + conv1(snake(conv7(snake(x)))).
//
// A block goes through neighbouring pieces of 64 or 128 rows. Its row warps bring a piece through the snake
// into shared memory, every eight channels on their own: [8 channels][row], 16 bytes a row, behind the rows
// that it looks back at, which they copy from the piece before. So a tap is the same operand begun some rows
// later, and nothing is stored once for each tap. Two warpgroups multiply: the wide convolution, whose result
// passes through the second snake in registers and is, there, the operand of the narrow one.
//
// The weights of 64 and 96 channels stay in shared memory for all pieces, and each warpgroup has pieces of
// its own, so that one multiplies while the other is between its products. The weights of more channels pass
// through a ring of stages, and both warpgroups have 64 rows of every piece. Sums run in the order of
// matrix_layout.cuh: the bits are those of the two products one by one.
#pragma once

#include "ops/cuda/conv/conv_channels.cuh"
#include "ops/cuda/conv/residual_unit_load.cuh"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/product_epilogue.cuh"
#include "ops/cuda/gemm/operands/quad_store.cuh"
#include "ops/cuda/gemm/operands/tile_store.cuh"
#include "ops/cuda/ptx/wgmma.cuh"

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
        first_row_(Sizes::kOwnPieces ? 0 : group * 64),
        row_(first_row_ + static_cast<int>(threadIdx.x % 128 / 32) * 16 +
             static_cast<int>(threadIdx.x % 32 / 4)) {}

  __device__ void run() {
    Ring<Sizes::kBuffers> buffers;
    if (Sizes::kOwnPieces && group_ == 1) buffers.advance();
    while (true) {
      wait_for_phase(shared_.barriers().rows_full(buffers.at), buffers.parity);
      if (shared_.tile(buffers.at).rows == 0) return;
      uint32_t between[kChannels / 4];  // two channels each
#pragma unroll
      for (int part = 0; part < Sizes::kWideParts; ++part)
        convolve_wide(shared_.rows(buffers.at), part, between + part * (Sizes::kWideOutputs / 4));
      const UnitTile tile = shared_.tile(buffers.at);
      release(shared_.barriers().rows_empty(buffers.at));
#pragma unroll 1
      for (int part = 0; part < Sizes::kNarrowParts; ++part) convolve_narrow(between, part, tile);
      buffers.advance();
      if (Sizes::kOwnPieces) buffers.advance();
    }
  }

 private:
  static constexpr int kWideSums = Sizes::kWideOutputs / 2, kNarrowSums = Sizes::kNarrowOutputs / 2;
  static constexpr int kSegmentTiles =  // of the narrow convolution
      (Sizes::kTapTiles + kSegments - 1) / kSegments;
  static constexpr int kNarrowSegments = (Sizes::kTapTiles + kSegmentTiles - 1) / kSegmentTiles;
  // Where there are registers for it, a segment's products begin before those of the one before have ended.
  static constexpr int kWideTurns = Sizes::kResident ? 2 : 1;
  static constexpr int kNarrowTurns = kChannels == 128 || kChannels == 192 ? 2 : 1;

  template <int kSums>
  __device__ static void add(float (&totals)[kSums], const float (&sums)[kSums]) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) totals[i] = __fadd_rn(totals[i], sums[i]);
  }

  // One part of what the wide convolution makes of the rows, through the second snake.
  __device__ void convolve_wide(uint32_t rows, int part, uint32_t* between) {
    float totals[kWideSums] = {};
    uint64_t tap_rows = UnitShared<kChannels>::rows_operand(rows + static_cast<uint32_t>(first_row_ * 16));
    if constexpr (kWideTurns == 2) {
      float sums[2][kWideSums] = {};
#pragma unroll
      for (int tap = 0; tap < kUnitTaps; ++tap, tap_rows += static_cast<uint64_t>(a_.dilation)) {
        pin(sums[tap % 2]);
        begin_multiplications();
        begin_tap(tap_rows, sums[tap % 2]);
        end_multiplications();
        if (tap == 0) continue;
        wait_for_multiplications<1>();
        pin(sums[(tap - 1) % 2]);
        add(totals, sums[(tap - 1) % 2]);
      }
      wait_for_multiplications<0>();
      pin(sums[(kUnitTaps - 1) % 2]);
      add(totals, sums[(kUnitTaps - 1) % 2]);
    } else {
      float sums[kWideSums] = {};
#pragma unroll 1
      for (int tap = 0; tap < kUnitTaps; ++tap, tap_rows += static_cast<uint64_t>(a_.dilation)) {
        multiply_tap(tap_rows, sums);
        add(totals, sums);
      }
    }
    snake_and_round(totals, part, between);
  }

  // Of one tap, with resident weights: no one waits for their end.
  __device__ void begin_tap(uint64_t a, float (&sums)[kWideSums]) {
#pragma unroll
    for (int i = 0; i < Sizes::kTapStages; ++i, ring_.advance()) {
      wait_for_phase(shared_.barriers().weights_full(ring_.stage), ring_.parity);
      multiply_stage(sums, a, i);
    }
  }
  // sums = one tap's products.
  __device__ void multiply_tap(uint64_t a, float (&sums)[kWideSums]) {
#pragma unroll 1
    for (int i = 0; i < Sizes::kTapStages; ++i) {
      wait_for_phase(shared_.barriers().weights_full(ring_.stage), ring_.parity);
      pin(sums);
      begin_multiplications();
      multiply_stage(sums, a, i);
      end_multiplications();
      if (i > 0) {
        wait_for_multiplications<1>();
        release_weights();
      }
      ring_.advance();
    }
    wait_for_multiplications<0>();
    pin(sums);
    release_weights();
  }
  __device__ void multiply_stage(float (&sums)[kWideSums], uint64_t& a, int stage_of_tap) const {
    uint64_t b = operand_at(shared_.weights(ring_.stage), Sizes::kTileRowBytes);
#pragma unroll
    for (int tile = 0; tile < Sizes::kStageTiles; ++tile) {
      multiply_wide<T>(sums, a, b, tile == 0 ? static_cast<uint32_t>(stage_of_tap) : 1);
      multiply_wide<T>(sums, a + Sizes::kSixteenChannels, b + kSecondHalf, 1);
      a += 2 * Sizes::kSixteenChannels, b += kTileBytes >> 4;
    }
  }

  // The registers of sums lie as those of an operand do, in pairs of channels.
  __device__ void snake_and_round(const float (&totals)[kWideSums], int part, uint32_t* between) const {
    const UnitFactors<kChannels>& f = shared_.factors();
    const int column = static_cast<int>(threadIdx.x % 4) * 2;
#pragma unroll
    for (int n = 0; n < Sizes::kWideOutputs / 8; ++n) {
      const int c = part * Sizes::kWideOutputs + 8 * n + column;
      const float2 bias = pair_at(f.wide_bias + c), alpha = pair_at(f.narrow_alpha + c),
                   inverse = pair_at(f.narrow_inverse + c);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float low = epilogue_value(totals[4 * n + 2 * i], bias.x, 1.0f, 0.0f, Activation::none);
        const float high = epilogue_value(totals[4 * n + 2 * i + 1], bias.y, 1.0f, 0.0f, Activation::none);
        between[2 * n + i] =
            rounded_pair(kDType, near_snake(low, alpha.x, inverse.x), near_snake(high, alpha.y, inverse.y));
      }
    }
  }

  // One part of the outputs of the narrow convolution, and x with them -> y.
  __device__ void convolve_narrow(const uint32_t (&between)[kChannels / 4], int part, const UnitTile& tile) {
    Held held;
    float totals[kNarrowSums] = {};
    {
      float sums[kNarrowTurns][kNarrowSums] = {};
#pragma unroll
      for (int segment = 0; segment < kNarrowSegments; ++segment) {
        begin_segment(between, segment, sums[segment % kNarrowTurns]);
        if (kNarrowTurns == 2 && segment == 0) continue;
        wait_for_multiplications<kNarrowTurns - 1>();
        const int ended = segment - (kNarrowTurns - 1);
        end_segment(ended, sums[ended % kNarrowTurns], totals);
      }
      if constexpr (kNarrowTurns == 2) {
        load_held(tile, part, held);
        wait_for_multiplications<0>();
        end_segment(kNarrowSegments - 1, sums[(kNarrowSegments - 1) % 2], totals);
      }
    }
    if constexpr (kNarrowTurns == 1) load_held(tile, part, held);
    if (Sizes::kMakesReady && a_.ready)
      store_with_held<true>(tile, part, totals, held);
    else
      store_with_held<false>(tile, part, totals, held);
  }

  __device__ void begin_segment(const uint32_t (&between)[kChannels / 4], int segment,
                                float (&sums)[kNarrowSums]) {
    pin(sums);
#pragma unroll
    for (int i = 0; i < kSegmentTiles; ++i) {
      const int tile = segment * kSegmentTiles + i;
      if (tile >= Sizes::kTapTiles) break;
      if (tile % Sizes::kStageTiles == 0) {
        wait_for_phase(shared_.barriers().weights_full(ring_.stage), ring_.parity);
        narrow_stage_ = shared_.weights(ring_.stage);
        ring_.advance();
      }
      const uint64_t b = operand_at(narrow_stage_, Sizes::kTileRowBytes) +
                         static_cast<uint64_t>(tile % Sizes::kStageTiles * (kTileBytes >> 4));
      begin_multiplications();
      multiply_registers<T>(sums, &between[tile * 8], b, i == 0 ? 0 : 1);
      multiply_registers<T>(sums, &between[tile * 8 + 4], b + kSecondHalf, 1);
    }
    end_multiplications();
  }
  __device__ void end_segment(int segment, float (&sums)[kNarrowSums], float (&totals)[kNarrowSums]) {
    pin(sums);
    add(totals, sums);
#pragma unroll
    for (int i = 0; i < kSegmentTiles; ++i) {
      const int tile = segment * kSegmentTiles + i;
      if (tile < Sizes::kTapTiles && tile % Sizes::kStageTiles == Sizes::kStageTiles - 1) release_weights();
    }
  }

  // Outputs that are finished together, of which a thread has four neighbours of each of its rows.
  static constexpr int kChunk = 16, kChunks = Sizes::kNarrowOutputs / kChunk;
  using Held = float4[kChunks][2];  // what x holds where they go

  // Of rows that do not exist the last one's: without a condition loads need not wait for others.
  __device__ void load_held(const UnitTile& piece, int part, Held& held) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float* const from = a_.source.x + (piece.first + min(row_ + 8 * i, piece.rows - 1)) * kChannels +
                                part * Sizes::kNarrowOutputs + quad_column();
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk)
        held[chunk][i] = __ldcs(reinterpret_cast<const float4*>(from + chunk * kChunk));  // its last use
    }
  }
  template <bool kReady>
  __device__ void store_with_held(const UnitTile& piece, int part, const float (&totals)[kNarrowSums],
                                  const Held& held) const {
    const int first_output = part * Sizes::kNarrowOutputs + quad_column();
    const float* const biases = shared_.factors().narrow_bias + first_output;
    const int64_t row = piece.first + row_ + (kReady ? piece.ready_offset : 0);
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const float4 bias = *reinterpret_cast<const float4*>(biases + chunk * kChunk);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float4 own = quad_of(totals, chunk, i), before = held[chunk][i];
        const float4 y = {epilogue_value(own.x, bias.x, 1.0f, before.x, Activation::none),
                          epilogue_value(own.y, bias.y, 1.0f, before.y, Activation::none),
                          epilogue_value(own.z, bias.z, 1.0f, before.z, Activation::none),
                          epilogue_value(own.w, bias.w, 1.0f, before.w, Activation::none)};
        if (row_ + 8 * i >= piece.rows) continue;
        const int64_t at = (row + 8 * i) * kChannels + first_output + chunk * kChunk;
        if constexpr (kReady)
          store_past_first_cache(static_cast<T*>(a_.ready) + at,
                                 made_ready(y, first_output + chunk * kChunk));
        else
          store_past_first_cache(a_.y + at, y);
      }
    }
  }
  // Four outputs from `c` on, through the reader's snake.
  __device__ uint2 made_ready(const float4& y, int c) const {
    const UnitFactors<kChannels>& f = shared_.factors();
    const float4 alpha = *reinterpret_cast<const float4*>(f.ready_alpha + c),
                 inverse = *reinterpret_cast<const float4*>(f.ready_inverse + c);
    return {rounded_pair(kDType, near_snake(y.x, alpha.x, inverse.x), near_snake(y.y, alpha.y, inverse.y)),
            rounded_pair(kDType, near_snake(y.z, alpha.z, inverse.z), near_snake(y.w, alpha.w, inverse.w))};
  }
  __device__ static float2 pair_at(const float* values) { return *reinterpret_cast<const float2*>(values); }
  __device__ static void release(uint32_t barrier) {
    if (threadIdx.x % 32 == 0) arrive(barrier);
  }
  // Stages are let go in the order in which they came.
  __device__ void release_weights() {
    if constexpr (Sizes::kResident) return;
    release(shared_.barriers().weights_empty(done_.stage));
    done_.advance();
  }

  static constexpr DType kDType = std::is_same_v<T, __nv_bfloat16> ? DType::bf16 : DType::f16;

  const UnitArguments& a_;
  const UnitShared<kChannels>& shared_;
  const int group_, first_row_, row_;  // rows of a piece: the warpgroup's first, the thread's first
  UnitRing<kChannels> ring_, done_;
  uint32_t narrow_stage_ = 0;
};

template <typename T, int kChannels>
__global__ void __launch_bounds__(UnitSizes<kChannels>::kThreads, 1)
    unit_kernel(const __grid_constant__ WgmmaUnitArguments arguments) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Sizes = UnitSizes<kChannels>;
  extern __shared__ __align__(1024) char shared_bytes[];
  const UnitShared<kChannels> shared(shared_bytes);
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
  if (threadIdx.x == 0)
    shared.barriers().init(Sizes::kConsumerWarps, 32 * Sizes::kRowWarps, Sizes::kBufferConsumers);
  load_factors(arguments, shared);
  __syncthreads();
  if (warp < Sizes::kLoadingWarps) {
    give_registers<Sizes::kLoaderRegisters>();
    if (warp == Sizes::kRowWarps) {
      if constexpr (Sizes::kResident) {
        if (threadIdx.x % 32 == 0) load_resident_weights(arguments, shared);
        __syncwarp();
        wait_for_inputs();
        wait_for_resident_weights(shared);
      } else {
        wait_for_inputs();
        stream_weights(arguments, shared);
      }
    } else {
      wait_for_inputs();
      if (warp < Sizes::kRowWarps) load_pieces<T>(arguments, shared, static_cast<int>(threadIdx.x));
    }
  } else {
    take_registers<Sizes::kConsumerRegisters>();
    wait_for_inputs();
    if constexpr (Sizes::kFirstByConsumers)
      load_first_piece<T>(arguments, shared, static_cast<int>(threadIdx.x) - 32 * Sizes::kLoadingWarps);
    UnitConsumer<T, kChannels>(arguments, shared, (warp - Sizes::kLoadingWarps) / 4).run();
  }
#endif
}

}  // namespace shoal::ops::cuda
