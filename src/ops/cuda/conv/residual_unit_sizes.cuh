// How the blocks of residual_unit.cuh divide work and shared memory.
//   weights: stages of some outputs by some inputs of a tap, [8 outputs each][32 inputs each][512 bytes]
//   rows: buffers of [8 channels][kPitch rows][16 bytes]; row m of a piece at m + look_back
#pragma once

#include "ops/cuda/conv/conv_channels.cuh"
#include "ops/cuda/conv/conv_pipeline.cuh"
#include "ops/cuda/conv/residual_unit_arguments.cuh"
#include "ops/cuda/gemm/operands/matrix_layout.cuh"
#include "ops/cuda/gemm/operands/operand_map.cuh"
#include "ops/cuda/ptx/mbarrier.cuh"
#include "ops/cuda/ptx/shared_address.cuh"

namespace shoal::ops::cuda {

// What the kernel is told.
struct WgmmaUnitArguments : UnitArguments {
  CUtensorMap wide, narrow;  // stages of weights
};

// What differs by the number of channels.
struct UnitDivision {
  bool own_pieces;  // each of the two warpgroups that multiply has pieces of its own, or 64 rows of every one
  int wide_outputs;    // of the wide convolution that are made at a time
  int narrow_outputs;  // of the narrow one
  int stage_tiles;     // a stage holds one part's weights for so many tiles of inputs of one tap
  int ring_bytes;      // of stages in turn; 0: all weights stay in shared memory
  int buffers;         // of rows
  int loading_warps;   // whole warpgroups: rows, weights, and idle ones
  int row_warps;       // that bring rows
  int rows_of_thread;  // whose loads are on their way together
  int loader_registers;
};

// 96, 192 and 384: a codec's decoder. 64, 128 and 256: its encoder.
template <int kChannels>
constexpr UnitDivision unit_division() {
  if constexpr (kChannels == 64) return {true, 64, 64, 2, 0, 4, 8, 4, 4, 80};
  if constexpr (kChannels == 96) return {true, 96, 96, 3, 0, 3, 8, 6, 4, 80};
  if constexpr (kChannels == 128) return {false, 128, 64, 2, 131072, 2, 8, 4, 8, 80};
  if constexpr (kChannels == 192) return {false, 192, 96, 2, 73728, 2, 4, 3, 8, 72};
  if constexpr (kChannels == 256) return {false, 128, 64, 2, 114688, 1, 4, 2, 8, 72};
  if constexpr (kChannels == 384) return {false, 96, 96, 3, 73728, 1, 4, 3, 8, 72};
  return {};
}

template <int kChannels>
struct UnitSizes {
  static constexpr UnitDivision kDivision = unit_division<kChannels>();
  static_assert(kDivision.wide_outputs > 0, "there is no kernel for so many channels");
  static constexpr bool kMakesReady = kChannels != 96;  // what follows those takes f32 rows
  static constexpr int kAllChannels = kChannels;
  static constexpr bool kOwnPieces = kDivision.own_pieces;
  static constexpr int kRows = kOwnPieces ? 64 : 128;
  static constexpr int kWideOutputs = kDivision.wide_outputs, kNarrowOutputs = kDivision.narrow_outputs;
  static constexpr int kWideParts = kChannels / kWideOutputs, kNarrowParts = kChannels / kNarrowOutputs;
  static constexpr int kTapTiles = kChannels / kTileInputs;

  static constexpr int kStageTiles = kDivision.stage_tiles;
  static constexpr int kTileRowBytes = kStageTiles * kTileBytes;
  static constexpr int kWideBytes = kWideOutputs / kTileOutputs * kTileRowBytes;
  static constexpr int kNarrowBytes = kNarrowOutputs / kTileOutputs * kTileRowBytes;
  static constexpr int kTapStages = kTapTiles / kStageTiles;
  static constexpr int kWideStages = kUnitTaps * kTapStages;  // of one part of the outputs
  static constexpr int kPieceStages = kWideParts * kWideStages + kNarrowParts * kTapStages;
  static constexpr bool kResident = kDivision.ring_bytes == 0;
  static constexpr int kStages = kResident ? kPieceStages : kDivision.ring_bytes / kWideBytes;

  // Eight rows of one operand lie in 128 bytes; one row more than a multiple of eight, so that neighbouring
  // channels of a row lie in different banks.
  static constexpr int kPitch = (kRows + (kUnitTaps - 1) * kUnitMostDilation + 7) / 8 * 8 + 1;
  static constexpr int kBufferBytes = kChannels / kEight * kPitch * 16;
  static constexpr int kRowBytes = 16;
  __device__ static int column(int quad) { return quad / 2 * kPitch * 16 + quad % 2 * 8; }
  static constexpr int kBuffers = kDivision.buffers;
  // From 16 channels to the next, as operands count.
  static constexpr uint64_t kSixteenChannels = 2 * kPitch;

  // The first warps bring rows, the next one weights. Registers go where they are needed.
  static constexpr int kLoadingWarps = kDivision.loading_warps, kConsumerWarps = 8;
  static constexpr int kRowWarps = kDivision.row_warps, kRowsOfThread = kDivision.rows_of_thread;
  // Who multiplies brings a block's first piece, with more loads on their way than the row warps have
  // registers for: nothing else can overlap it.
  static constexpr bool kFirstByConsumers = !kOwnPieces;
  static constexpr int kFirstThreads = kChannels % 96 == 0 ? 192 : 256;  // of them
  static constexpr int kBufferConsumers = kOwnPieces ? 4 : 8;            // warps that let a buffer go
  static constexpr int kThreads = 32 * (kLoadingWarps + kConsumerWarps);
  // What a block starts with is shared out anew; asking for more would wait for ever.
  static constexpr int kRegistersAtStart = 65536 / kThreads / 8 * 8;
  static constexpr int kLoaderRegisters = kDivision.loader_registers;
  static constexpr int kConsumerRegisters =
      kRegistersAtStart + (kRegistersAtStart - kLoaderRegisters) * kLoadingWarps / kConsumerWarps;
  static_assert(kConsumerRegisters % 8 == 0);
};

// Of the snakes and the epilogues.
template <int kChannels>
struct UnitFactors {
  float wide_alpha[kChannels], wide_inverse[kChannels], wide_bias[kChannels];
  float narrow_alpha[kChannels], narrow_inverse[kChannels], narrow_bias[kChannels];
  static constexpr int kReady = UnitSizes<kChannels>::kMakesReady ? kChannels : 4;
  float ready_alpha[kReady], ready_inverse[kReady];
};

// What those who multiply are told of a piece.
struct UnitTile {
  int64_t first = 0;     // row of x
  int rows = 0;          // that follow in its sequence, it included; 0: there are no more pieces
  int ready_offset = 0;  // how much later a row is among ready rows
};

template <int kChannels>
class UnitShared {
 public:
  using Sizes = UnitSizes<kChannels>;

  static constexpr int kRowsOffset = Sizes::kStages * Sizes::kWideBytes;
  static constexpr int kFactorsOffset = kRowsOffset + Sizes::kBuffers * Sizes::kBufferBytes;
  static constexpr int kTilesOffset = kFactorsOffset + static_cast<int>(sizeof(UnitFactors<kChannels>));
  static constexpr int kBarriersOffset =
      kTilesOffset + (Sizes::kBuffers + 1) / 2 * 2 * static_cast<int>(sizeof(UnitTile));
  static constexpr int kBytes = kBarriersOffset + ConvBarriers<Sizes::kStages, Sizes::kBuffers>::kBytes;
  static_assert(kBytes <= 232448);

  __device__ explicit UnitShared(char* bytes) : bytes_(bytes), base_(shared_address(bytes)) {}

  __device__ uint32_t weights(int stage) const {
    return base_ + static_cast<uint32_t>(stage * Sizes::kWideBytes);
  }
  __device__ uint32_t rows(int buffer) const {
    return base_ + static_cast<uint32_t>(kRowsOffset + buffer * Sizes::kBufferBytes);
  }
  __device__ static uint64_t rows_operand(uint32_t shared) { return plain_operand_at(shared, Sizes::kPitch); }
  __device__ char* row_bytes(int buffer) const { return bytes_ + kRowsOffset + buffer * Sizes::kBufferBytes; }
  __device__ UnitFactors<kChannels>& factors() const {
    return *reinterpret_cast<UnitFactors<kChannels>*>(bytes_ + kFactorsOffset);
  }
  // Of the piece in a buffer.
  __device__ UnitTile& tile(int buffer) const {
    return reinterpret_cast<UnitTile*>(bytes_ + kTilesOffset)[buffer];
  }
  using Barriers = ConvBarriers<Sizes::kStages, Sizes::kBuffers>;
  __device__ Barriers barriers() const { return Barriers(base_ + static_cast<uint32_t>(kBarriersOffset)); }

 private:
  char* bytes_;
  uint32_t base_;
};

// Stages in turn. Resident ones are full once and stay so.
template <int kChannels>
struct UnitRing {
  int stage = 0;
  uint32_t parity = 0;

  __device__ void advance() {
    if (++stage < UnitSizes<kChannels>::kStages) return;
    stage = 0;
    if constexpr (!UnitSizes<kChannels>::kResident) parity ^= 1;
  }
};

// By all threads of the block. Factors are constant, as weights are.
template <int kChannels>
__device__ inline void load_factors(const UnitArguments& a, const UnitShared<kChannels>& shared) {
  UnitFactors<kChannels>& f = shared.factors();
  for (int c = static_cast<int>(threadIdx.x); c < kChannels; c += UnitSizes<kChannels>::kThreads) {
    const float wide = __ldg(a.source.alpha + c), narrow = __ldg(a.narrow_alpha + c);
    f.wide_alpha[c] = wide, f.wide_inverse[c] = snake_inverse(wide);
    f.narrow_alpha[c] = narrow, f.narrow_inverse[c] = snake_inverse(narrow);
    f.wide_bias[c] = a.wide_bias ? __ldg(a.wide_bias + c) : 0.0f;
    f.narrow_bias[c] = a.narrow_bias ? __ldg(a.narrow_bias + c) : 0.0f;
    if (!UnitSizes<kChannels>::kMakesReady || !a.ready) continue;
    f.ready_alpha[c] = __ldg(a.ready_alpha + c), f.ready_inverse[c] = snake_inverse(f.ready_alpha[c]);
  }
}

}  // namespace shoal::ops::cuda
