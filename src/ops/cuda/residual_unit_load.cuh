// How a residual unit's weights and rows get into the shared memory of residual_unit.cuh.
//   weights: stages of 96 outputs by 96 inputs, [8 outputs each][32 inputs each][512 bytes, as in memory]
//   rows: buffers of [8 channels][kPitch rows][16 bytes]; row m of a piece at m + look_back
#pragma once

#include "ops/cuda/conv_channels.cuh"
#include "ops/cuda/conv_pieces.cuh"
#include "ops/cuda/conv_pipeline.cuh"
#include "ops/cuda/matrix_layout.cuh"
#include "ops/cuda/operand_map.cuh"
#include "ops/cuda/wide_barrier.cuh"

namespace shoal::ops::cuda {

constexpr int kUnitTaps = 7, kUnitRows = 128, kUnitMostDilation = 9;
constexpr int kUnitOutputs = 96;    // that are made at a time, by either convolution
constexpr int kUnitStageTiles = 3;  // of 32 inputs, of a stage of weights

struct UnitArguments {
  CUtensorMap wide, narrow;  // stages of weights
  ConvSource source;
  const float *wide_bias = nullptr, *narrow_bias = nullptr;  // [channels], or null
  const float* narrow_alpha = nullptr;                       // [channels]
  float* y = nullptr;                                        // [rows, channels], not x
  int dilation = 1;
  bool vectors = false;  // histories are aligned to 16 bytes
  int pieces = 0;        // at most
};

template <int kChannels>
struct UnitSizes {
  static_assert(kChannels % kUnitOutputs == 0 && kChannels <= 384);
  static constexpr int kParts = kChannels / kUnitOutputs;  // of the outputs
  static constexpr int kSums = kUnitOutputs / 2;           // of a thread, for 64 rows of a warpgroup
  static constexpr int kTapTiles = kChannels / kTileInputs;

  // A stage holds one part's weights for some tiles of inputs of one tap.
  static constexpr int kStageTiles = kUnitStageTiles, kStageTileRows = kUnitOutputs / kTileOutputs;
  static constexpr int kStageBytes = kStageTileRows * kStageTiles * kTileBytes;
  static constexpr int kTapStages = kTapTiles / kStageTiles;
  static constexpr int kWideStages = kUnitTaps * kTapStages;  // of one part of the outputs
  static constexpr int kPieceStages = kParts * (kWideStages + kTapStages);
  static constexpr bool kResident = kChannels == 96;
  static constexpr int kStages = kResident ? kPieceStages : 12 / kStageTiles;

  // Eight rows of one operand lie in 128 bytes; one row more than a multiple of eight, so that neighbouring
  // channels of a row lie in different banks.
  static constexpr int kPitch = (kUnitRows + (kUnitTaps - 1) * kUnitMostDilation + 7) / 8 * 8 + 1;
  static constexpr int kBufferBytes = kChannels / kEight * kPitch * 16;
  static constexpr int kBuffers = kChannels <= 192 ? 2 : 1;
  // From 16 channels to the next, as operands count.
  static constexpr uint64_t kSixteenChannels = 2 * kPitch;

  // Where weights pass through, the first warp brings them. Registers go where they are needed.
  static constexpr int kLoadingWarps = kParts <= 2 ? 8 : 4, kConsumerWarps = 8;
  static constexpr int kRowWarps = kResident ? kLoadingWarps : kLoadingWarps - 1;
  static constexpr int kThreads = 32 * (kLoadingWarps + kConsumerWarps);
  // What a block starts with is shared out anew; asking for more would wait for ever.
  static constexpr int kRegistersAtStart = 65536 / kThreads / 8 * 8;
  static constexpr int kLoaderRegisters = kParts == 1 ? 72 : kParts == 2 ? 80 : 56;
  static constexpr int kConsumerRegisters =
      kRegistersAtStart + (kRegistersAtStart - kLoaderRegisters) * kLoadingWarps / kConsumerWarps;
  static_assert(kConsumerRegisters % 8 == 0);
  static constexpr int kRowsOfThread = kParts <= 2 ? 4 : 3;  // whose loads are on their way together
};

// Of the snakes and the epilogues.
template <int kChannels>
struct UnitFactors {
  float wide_alpha[kChannels], wide_inverse[kChannels], wide_bias[kChannels];
  float narrow_alpha[kChannels], narrow_inverse[kChannels], narrow_bias[kChannels];
};

template <int kChannels>
class UnitShared {
 public:
  using Sizes = UnitSizes<kChannels>;

  static constexpr int kRowsOffset = Sizes::kStages * Sizes::kStageBytes;
  static constexpr int kFactorsOffset = kRowsOffset + Sizes::kBuffers * Sizes::kBufferBytes;
  static constexpr int kBarriersOffset = kFactorsOffset + static_cast<int>(sizeof(UnitFactors<kChannels>));
  static constexpr int kBytes = kBarriersOffset + ConvBarriers<Sizes::kStages, Sizes::kBuffers>::kBytes;

  __device__ explicit UnitShared(char* bytes)
      : bytes_(bytes), base_(static_cast<uint32_t>(__cvta_generic_to_shared(bytes))) {}

  __device__ uint32_t weights(int stage) const {
    return base_ + static_cast<uint32_t>(stage * Sizes::kStageBytes);
  }
  __device__ uint32_t rows(int buffer) const {
    return base_ + static_cast<uint32_t>(kRowsOffset + buffer * Sizes::kBufferBytes);
  }
  __device__ static uint64_t rows_operand(uint32_t shared) { return plain_operand_at(shared, Sizes::kPitch); }
  __device__ char* row_bytes(int buffer) const { return bytes_ + kRowsOffset + buffer * Sizes::kBufferBytes; }
  __device__ UnitFactors<kChannels>& factors() const {
    return *reinterpret_cast<UnitFactors<kChannels>*>(bytes_ + kFactorsOffset);
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
  }
}

// By one thread: what(map, x, y) for each stage of a piece's weights, in the order in which they are used: by
// convolution, part of the outputs, tap, inputs.
template <int kChannels, typename What>
__device__ inline void for_stages(const UnitArguments& a, What&& what) {
  using Sizes = UnitSizes<kChannels>;
  constexpr int kUnits = Sizes::kStageTiles * kTileBytes / kWeightMapUnit;
  for (int part = 0; part < Sizes::kParts; ++part)
    for (int i = 0; i < Sizes::kWideStages; ++i) what(a.wide, i * kUnits, part * Sizes::kStageTileRows);
  for (int part = 0; part < Sizes::kParts; ++part)
    for (int i = 0; i < Sizes::kTapStages; ++i) what(a.narrow, i * kUnits, part * Sizes::kStageTileRows);
}

template <int kChannels>
__device__ inline void load_stage(const UnitShared<kChannels>& shared, int stage, const CUtensorMap& map,
                                  int x, int y) {
  arrive_expecting(shared.barriers().weights_full(stage), UnitSizes<kChannels>::kStageBytes);
  copy_rectangle(shared.weights(stage), map, x, y, shared.barriers().weights_full(stage));
}

// By one thread.
template <int kChannels>
__device__ inline void load_resident_weights(const UnitArguments& a, const UnitShared<kChannels>& shared) {
  int stage = 0;
  for_stages<kChannels>(
      a, [&](const CUtensorMap& map, int x, int y) { load_stage(shared, stage++, map, x, y); });
}
// A block must not end before what it asked for is there.
template <int kChannels>
__device__ inline void wait_for_resident_weights(const UnitShared<kChannels>& shared) {
  for (int stage = 0; stage < UnitSizes<kChannels>::kStages; ++stage)
    wait_for_phase(shared.barriers().weights_full(stage), 0);
}

// By one warp: all pieces of the block, stage after stage.
template <int kChannels>
__device__ inline void stream_weights(const UnitArguments& a, const UnitShared<kChannels>& shared) {
  UnitRing<kChannels> ring;
  for (int piece = static_cast<int>(blockIdx.x); piece < a.pieces; piece += static_cast<int>(gridDim.x)) {
    if (rows_of_piece(a.source, piece, kUnitRows).count == 0) return;
    if (threadIdx.x % 32 != 0) continue;
    for_stages<kChannels>(a, [&](const CUtensorMap& map, int x, int y) {
      wait_for_phase(shared.barriers().weights_empty(ring.stage), ring.parity ^ 1);
      load_stage(shared, ring.stage, map, x, y);
      ring.advance();
    });
  }
}

// Rows of a piece that a thread brings, all of the same eight channels.
template <typename T, int kChannels>
class UnitRowLoader {
 public:
  using Sizes = UnitSizes<kChannels>;
  static constexpr int kChunks = kChannels / kEight;
  static constexpr int kRowsTogether = 32 * Sizes::kRowWarps / kChunks;  // by all threads
  static constexpr int kRowsOfThread = Sizes::kRowsOfThread;

  // thread: of those that bring rows.
  __device__ UnitRowLoader(const UnitArguments& a, const UnitShared<kChannels>& shared, int thread)
      : source_(a.source),
        vectors_(a.vectors),
        factors_(shared.factors()),
        chunk_(thread % kChunks),
        row_(thread / kChunks) {}

  // to: the place of the piece's first row, which is look_back rows before its own.
  __device__ void bring(const PieceRows& piece, char* to) const {
    if (row_ >= kRowsTogether) return;
    const int rows = kUnitRows + source_.look_back;
    const float* const x = source_.x + source_.begin_of(piece.sequence) * kChannels;
    const float* const history = source_.history_of(piece.sequence);
    for (int row = row_; row < rows; row += kRowsTogether * kRowsOfThread) {
      EightFloats values[kRowsOfThread];
#pragma unroll
      for (int i = 0; i < kRowsOfThread; ++i) {
        const int at = piece.first + row + i * kRowsTogether - source_.look_back;
        values[i] = {};
        if (at >= piece.count) continue;
        const float* const from =
            at < 0 ? history + int64_t{at + source_.look_back} * kChannels : x + int64_t{at} * kChannels;
        values[i] = load_eight(from, chunk_ * kEight, kChannels, at >= 0 || vectors_);
      }
#pragma unroll
      for (int i = 0; i < kRowsOfThread; ++i) {
        const int m = row + i * kRowsTogether;
        if (m >= rows) break;
        if (piece.first + m >= source_.look_back) snake(values[i]);
        *reinterpret_cast<uint4*>(to + (chunk_ * Sizes::kPitch + m) * 16) = rounded_eight<T>(values[i]);
      }
    }
  }

 private:
  __device__ void snake(EightFloats& values) const {
    const EightFloats alpha = load_eight(factors_.wide_alpha, chunk_ * kEight, kChannels, true);
    const EightFloats inverse = load_eight(factors_.wide_inverse, chunk_ * kEight, kChannels, true);
#pragma unroll
    for (int i = 0; i < kEight; ++i) values.v[i] = snake_value(values.v[i], alpha.v[i], inverse.v[i]);
  }

  const ConvSource& source_;
  const bool vectors_;
  const UnitFactors<kChannels>& factors_;
  const int chunk_, row_;
};

// Has the rows of a piece brought nearer, into the second-level cache. By one warp.
template <int kChannels>
__device__ inline void prefetch_piece(const UnitArguments& a, int piece) {
  if (piece >= a.pieces) return;
  const PieceRows rows = rows_of_piece(a.source, piece, kUnitRows);
  const int left = rows.count - rows.first, count = left < kUnitRows ? left : kUnitRows;
  if (count <= 0 || threadIdx.x % 32 != 0) return;
  const float* const from = a.source.x + (a.source.begin_of(rows.sequence) + rows.first) * int64_t{kChannels};
  prefetch_bulk(from, static_cast<uint32_t>(count * kChannels) * 4);
}

// By the row warps, all pieces of the block.
template <typename T, int kChannels>
__device__ inline void load_pieces(const UnitArguments& a, const UnitShared<kChannels>& shared, int thread) {
  const UnitRowLoader<T, kChannels> loader(a, shared, thread);
  Ring<UnitSizes<kChannels>::kBuffers> buffers;
  for (int piece = static_cast<int>(blockIdx.x); piece < a.pieces; piece += static_cast<int>(gridDim.x)) {
    const PieceRows rows = rows_of_piece(a.source, piece, kUnitRows);
    if (rows.count == 0) return;
    if (thread < 32) prefetch_piece<kChannels>(a, piece + static_cast<int>(gridDim.x));
    wait_for_phase(shared.barriers().rows_empty(buffers.at), buffers.parity ^ 1);
    loader.bring(rows, shared.row_bytes(buffers.at));
    show_to_tensor_cores();
    arrive(shared.barriers().rows_full(buffers.at));
    buffers.advance();
  }
}

}  // namespace shoal::ops::cuda
