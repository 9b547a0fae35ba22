// A centred convolution of every segment by itself, with the norm and the snake before it and the statistics
// of its result, in one kernel for 16-bit weights and the tensor cores of sm_90a:
// y = before + conv(snake(scale x + shift)), and the sums of y and of its squares.
//
// A block goes through pieces of 256 (128 channels) or 128 rows (256 channels). Its row warps bring a piece,
// and the rows that it looks at on both sides, through norm and snake into shared memory, every eight
// channels on their own: [8 channels][row], 16 bytes a row. So a tap is the same operand begun some rows
// later. Weights pass through a ring of stages; two warpgroups multiply, each half of the rows, whose sums
// stay in registers until the end: by part of the inputs, tap, input. Pieces begin where segments do, so that
// neither sums nor statistics depend on what else is in the batch.
#pragma once

#include "ops/cuda/conv/styled_conv_load.cuh"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/quad_store.cuh"
#include "ops/cuda/ptx/wgmma.cuh"

namespace shoal::ops::cuda {

// One of the two warpgroups that multiply.
template <typename T, int kChannels>
class StyledConsumer {
 public:
  using Sizes = StyledSizes<kChannels>;

  __device__ StyledConsumer(const StyledConvArguments& arguments, const StyledShared<kChannels>& shared,
                            int group)
      : a_(arguments),
        shared_(shared),
        group_(group),
        warp_(static_cast<int>(threadIdx.x % 128 / 32)),
        row_(group * Sizes::kGroupRows + warp_ * 16 + static_cast<int>(threadIdx.x % 32 / 4)),
        column_(static_cast<int>(threadIdx.x % 2) * 8 + static_cast<int>(threadIdx.x % 4 / 2) * 4) {}

  __device__ void run() {
    while (true) {
      wait_for_phase(shared_.barriers().rows_full(buffers_.at), buffers_.parity);
      const StyledTile tile = shared_.tile(buffers_.at);
      if (tile.count == 0) return;
      Sums sums;
      multiply(sums);
      finish({tile.first + row_ * kChannels + column_, tile.count}, sums);
      if (a_.sums) store_sums(tile);
    }
  }

 private:
  // Of 64 rows by 128 outputs each: rows 64 .. 127 of the group, or outputs 128 .. 255, are the second.
  using Sums = float[2][64];
  static constexpr int kRowBlocks = 2 / Sizes::kParts;
  static constexpr int kOwnRows = 2 * kRowBlocks;
  // Outputs that are finished together, of which a thread has four neighbours of each of its rows.
  static constexpr int kChunk = 16, kChunks = kChannels / kChunk, kBlockChunks = 128 / kChunk;
  using Held = float4[kOwnRows];    // what `before` holds there
  static constexpr int kAhead = 1;  // chunks for which it is asked before it is their turn

  // Where the thread's first row of a piece, and its first outputs, lie in y; and how many rows the piece
  // has.
  struct Place {
    int64_t at;
    int count;
  };

  __device__ void multiply(Sums& sums) {
    uint32_t add = 0;
    int last = -1;  // stage whose multiplications may be unfinished
#pragma unroll 1
    for (int part = 0; part < Sizes::kParts; ++part) {
      if (part > 0) wait_for_phase(shared_.barriers().rows_full(buffers_.at), buffers_.parity);
      uint64_t rows = StyledShared<kChannels>::rows_operand(
          shared_.rows(buffers_.at) + static_cast<uint32_t>(group_ * Sizes::kGroupRows * 16));
#pragma unroll 1
      for (int tap = 0; tap < a_.taps; ++tap, rows += static_cast<uint64_t>(a_.dilation)) {
        uint64_t a = rows;
#pragma unroll 1
        for (int i = 0; i < Sizes::kTapStages; ++i, ring_.advance()) {
          wait_for_phase(shared_.barriers().weights_full(ring_.at), ring_.parity);
          multiply_stage(sums, a, add);
          add = 1;
          a += 2 * Sizes::kStageTiles * Sizes::kSixteenChannels;
          if (last >= 0) {
            wait_for_multiplications<1>();
            release(shared_.barriers().weights_empty(last));
          }
          last = ring_.at;
        }
      }
      wait_for_multiplications<0>();
      release(shared_.barriers().weights_empty(last));
      last = -1;
      release(shared_.barriers().rows_empty(buffers_.at));
      buffers_.advance();
    }
    pin(sums[0]);
    pin(sums[1]);
  }

  __device__ void multiply_stage(Sums& sums, uint64_t a, uint32_t add) {
    const uint64_t b = operand_at(shared_.weights(ring_.at), Sizes::kStageTiles * kTileBytes);
    // From one of the two to the other.
    constexpr uint64_t kNextA = kRowBlocks == 2 ? 64 : 0;
    constexpr uint64_t kNextB =
        kRowBlocks == 2 ? 0 : 128 / kTileOutputs * Sizes::kStageTiles * (kTileBytes >> 4);
    pin(sums[0]);
    pin(sums[1]);
    begin_multiplications();
#pragma unroll
    for (int k = 0; k < 2 * Sizes::kStageTiles; ++k) {
      const uint64_t own_a = a + k * Sizes::kSixteenChannels;
      const uint64_t own_b = b + k / 2 * (kTileBytes >> 4) + k % 2 * kSecondHalf;
      multiply_wide<T>(sums[0], own_a, own_b, k == 0 ? add : 1);
      multiply_wide<T>(sums[1], own_a + kNextA, own_b + kNextB, k == 0 ? add : 1);
    }
    end_multiplications();
  }

  __device__ void finish(const Place& place, const Sums& sums) {
    Held held[kAhead + 1];
#pragma unroll
    for (int chunk = 0; chunk < kAhead; ++chunk) load_held(place, chunk, held[chunk]);
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      if (chunk + kAhead < kChunks) load_held(place, chunk + kAhead, held[(chunk + kAhead) % (kAhead + 1)]);
      finish_chunk(place, chunk, sums, held[chunk % (kAhead + 1)]);
    }
  }

  __device__ void load_held(const Place& place, int chunk, Held& held) const {
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i) {
      held[i] = {};
      if (a_.before && row_ + down(i) < place.count)
        held[i] = *reinterpret_cast<const float4*>(a_.before + index(place, chunk, i));
    }
  }

  __device__ void finish_chunk(const Place& place, int chunk, const Sums& sums, const Held& held) {
    const float4 bias = *reinterpret_cast<const float4*>(shared_.bias() + chunk * kChunk + column_);
    float moments[8] = {};  // sums of the four outputs, then those of their squares
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i) {
      const float4 own =
          quad_of(sums[kRowBlocks == 2 ? i / 2 : chunk / kBlockChunks], chunk % kBlockChunks, i % 2);
      const float4 before = held[i];
      const float4 y = {
          __fadd_rn(before.x, __fadd_rn(own.x, bias.x)), __fadd_rn(before.y, __fadd_rn(own.y, bias.y)),
          __fadd_rn(before.z, __fadd_rn(own.z, bias.z)), __fadd_rn(before.w, __fadd_rn(own.w, bias.w))};
      const bool inside = row_ + down(i) < place.count;
      if (inside) *reinterpret_cast<float4*>(a_.y + index(place, chunk, i)) = y;
#pragma unroll
      for (int c = 0; c < 4; ++c) {  // a branch around it would cost more than what it saves
        const float value = inside ? (&y.x)[c] : 0.0f;
        moments[c] = __fadd_rn(moments[c], value);
        moments[4 + c] = __fmaf_rn(value, value, moments[4 + c]);
      }
    }
    if (a_.sums) keep_moments(chunk, moments);
  }

  // Over the eight lanes that have the same outputs: of two lanes each keeps one half of the values, three
  // times.
  __device__ void keep_moments(int chunk, float (&moments)[8]) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    int value = 0;  // of the eight, that the lane keeps
#pragma unroll
    for (int half = 4; half >= 1; half /= 2) {
      const bool upper = (lane & 4 * half) != 0;
      if (upper) value += half;
#pragma unroll
      for (int i = 0; i < half; ++i) {
        const float given = upper ? moments[i] : moments[i + half];
        const float kept = upper ? moments[i + half] : moments[i];
        moments[i] = __fadd_rn(kept, __shfl_xor_sync(~0u, given, 4 * half));
      }
    }
    shared_.sums(group_ * 4 + warp_)[value / 4 * kChannels + chunk * kChunk + column_ + value % 4] =
        moments[0];
  }

  // Of the group's rows, the four warps' added in order.
  __device__ void store_sums(const StyledTile& tile) const {
    synchronize_group();
    if (group_ * Sizes::kGroupRows < tile.count) {
      float* const to = a_.sums + (tile.place + group_) * 2 * kChannels;
      for (int i = static_cast<int>(threadIdx.x % 128); i < 2 * kChannels; i += 128) {
        float sum = 0.0f;
#pragma unroll
        for (int warp = 0; warp < 4; ++warp) sum = __fadd_rn(sum, shared_.sums(group_ * 4 + warp)[i]);
        to[i] = sum;
      }
    }
    synchronize_group();
  }

  __device__ void synchronize_group() const {
    asm volatile("bar.sync %0, 128;" ::"r"(1 + group_) : "memory");
  }
  // From the thread's first row to its i-th one.
  __device__ static constexpr int down(int i) { return i / 2 * 64 + i % 2 * 8; }
  __device__ static int64_t index(const Place& place, int chunk, int i) {
    return place.at + int64_t{down(i)} * kChannels + chunk * kChunk;
  }
  __device__ static void release(uint32_t barrier) {
    if (threadIdx.x % 32 == 0) arrive(barrier);
  }

  const StyledConvArguments& a_;
  const StyledShared<kChannels>& shared_;
  const int group_, warp_, row_, column_;  // row, column: of a piece and of a chunk, the thread's first
  Ring<Sizes::kStages> ring_;
  Ring<Sizes::kBuffers> buffers_;
};

template <typename T, int kChannels>
__global__ void __launch_bounds__(StyledSizes<kChannels>::kThreads, 1)
    styled_conv_kernel(const __grid_constant__ StyledConvArguments arguments) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Sizes = StyledSizes<kChannels>;
  extern __shared__ __align__(1024) char shared_bytes[];
  const StyledShared<kChannels> shared(shared_bytes);
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
  if (threadIdx.x == 0)
    shared.barriers().init(Sizes::kConsumerWarps, 32 * kStyledRowWarps, Sizes::kConsumerWarps);
  for (int c = static_cast<int>(threadIdx.x); c < kChannels; c += Sizes::kThreads)
    shared.bias()[c] = arguments.bias ? __ldg(arguments.bias + c) : 0.0f;
  __syncthreads();
  wait_for_inputs();
  if (warp < Sizes::kLoadingWarps) {
    give_registers<Sizes::kLoaderRegisters>();
    if (warp == kStyledRowWarps)
      stream_styled_weights(arguments, shared);
    else
      load_styled_rows<T>(arguments, shared, warp);
  } else {
    take_registers<Sizes::kConsumerRegisters>();
    StyledConsumer<T, kChannels>(arguments, shared, (warp - Sizes::kLoadingWarps) / 4).run();
  }
#endif
}

}  // namespace shoal::ops::cuda
