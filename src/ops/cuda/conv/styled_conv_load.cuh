// How rows and weights get into the shared memory of styled_conv.cuh.
//   weights: stages of all outputs by 32 or 64 inputs of a tap, [8 outputs each][32 inputs each][512 bytes]
//   rows: buffers of 128 channels, [8 channels][kPitch rows][16 bytes]; row m of a piece at m + reach
#pragma once

#include "ops/cuda/conv/conv_channels.cuh"
#include "ops/cuda/conv/conv_pipeline.cuh"
#include "ops/cuda/gemm/operands/matrix_layout.cuh"
#include "ops/cuda/gemm/operands/operand_map.cuh"
#include "ops/cuda/ptx/mbarrier.cuh"
#include "ops/cuda/ptx/shared_address.cuh"
#include "ops/cuda/rows/segment_rows.cuh"

namespace shoal::ops::cuda {

constexpr int kStyledMostSpan = 50;       // (taps - 1) * dilation
constexpr int kStyledPartChannels = 128;  // inputs whose rows come together
constexpr int kStyledRowWarps = 7;        // that bring rows; one more brings weights
constexpr int kStyledRowsOfWarp = 4;      // that are on their way together, while as many are computed

struct StyledConvArguments {
  CUtensorMap weights;  // stages
  SegmentRows segments;
  const float* x;        // [rows, channels]
  const float* factors;  // [segments, 2, channels]: scales, shifts
  const float* alpha;    // [channels]
  const float* bias;     // [channels], or null
  const float* before;   // [rows, channels], added to the result; or null
  float* y;              // [rows, channels], neither x nor before
  float* sums;           // of StyledSums, or null
  int taps, dilation;
  int pieces;  // at most
};

// What is known of a tensor's moments: for every `step` rows of a segment (kGroupRows) the sums of each
// channel and of its squares, f32 [2, channels].
struct StyledSums {
  // Where piece `piece` of the segment has its own: no two segments share a place.
  __host__ __device__ static int64_t place(int64_t begin, int segment, int64_t piece, int step) {
    return begin / step + segment + piece;
  }
  static int64_t places(const Segments& segments, int step) {
    return segments.total_rows() / step + segments.count() + 1;
  }
};

template <int kChannels>
struct StyledSizes {
  static_assert(kChannels == 128 || kChannels == 256);
  static constexpr int kParts = kChannels / kStyledPartChannels;  // of the inputs, and of the outputs
  // A warpgroup makes 64 rows by 128 outputs twice: of more rows, or of more outputs.
  static constexpr int kGroupRows = 128 / kParts, kRows = 2 * kGroupRows;

  static constexpr int kStageTiles = 2 / kParts, kStageTileRows = kChannels / kTileOutputs;
  static constexpr int kStageBytes = kStageTileRows * kStageTiles * kTileBytes;
  static constexpr int kTapStages = kStyledPartChannels / kTileInputs / kStageTiles;  // of a part's tap
  static constexpr int kStages = 4;

  // Odd, so that neighbouring channels of a row lie in different banks.
  static constexpr int kPitch = (kRows + kStyledMostSpan) | 1;
  static constexpr int kBufferBytes = kStyledPartChannels / kEight * kPitch * 16;
  static constexpr int kBuffers = kParts + 1;
  static constexpr uint64_t kSixteenChannels = 2 * kPitch;  // as operands count

  static constexpr int kLoadingWarps = kStyledRowWarps + 1, kConsumerWarps = 8;
  static constexpr int kThreads = 32 * (kLoadingWarps + kConsumerWarps);
  static constexpr int kRegistersAtStart = 65536 / kThreads / 8 * 8;
  static constexpr int kLoaderRegisters = 64;
  static constexpr int kConsumerRegisters =
      kRegistersAtStart + (kRegistersAtStart - kLoaderRegisters) * kLoadingWarps / kConsumerWarps;
};

// What those who multiply are told of a piece.
struct StyledTile {
  int64_t first;  // element of y: the piece's first
  int64_t place;  // of the sums of its first rows
  int count;      // rows; 0: there are no more pieces
};

template <int kChannels>
class StyledShared {
 public:
  using Sizes = StyledSizes<kChannels>;

  static constexpr int kRowsOffset = Sizes::kStages * Sizes::kStageBytes;
  static constexpr int kSumsOffset = kRowsOffset + Sizes::kBuffers * Sizes::kBufferBytes;
  static constexpr int kBiasOffset = kSumsOffset + Sizes::kConsumerWarps * 2 * kChannels * 4;
  static constexpr int kTilesOffset = kBiasOffset + kChannels * 4;
  static constexpr int kBarriersOffset =
      kTilesOffset + Sizes::kBuffers * static_cast<int>(sizeof(StyledTile));
  static constexpr int kBytes = kBarriersOffset + ConvBarriers<Sizes::kStages, Sizes::kBuffers>::kBytes;

  __device__ explicit StyledShared(char* bytes) : bytes_(bytes), base_(shared_address(bytes)) {}

  __device__ uint32_t weights(int stage) const {
    return base_ + static_cast<uint32_t>(stage * Sizes::kStageBytes);
  }
  __device__ uint32_t rows(int buffer) const {
    return base_ + static_cast<uint32_t>(kRowsOffset + buffer * Sizes::kBufferBytes);
  }
  __device__ static uint64_t rows_operand(uint32_t shared) { return plain_operand_at(shared, Sizes::kPitch); }
  __device__ char* row_bytes(int buffer) const { return bytes_ + kRowsOffset + buffer * Sizes::kBufferBytes; }
  // Of a consumer warp: [2][channels].
  __device__ float* sums(int warp) const {
    return reinterpret_cast<float*>(bytes_ + kSumsOffset) + warp * 2 * kChannels;
  }
  __device__ float* bias() const { return reinterpret_cast<float*>(bytes_ + kBiasOffset); }
  // Of the piece whose first part is in a buffer.
  __device__ StyledTile& tile(int buffer) const {
    return reinterpret_cast<StyledTile*>(bytes_ + kTilesOffset)[buffer];
  }
  using Barriers = ConvBarriers<Sizes::kStages, Sizes::kBuffers>;
  __device__ Barriers barriers() const { return Barriers(base_ + static_cast<uint32_t>(kBarriersOffset)); }

 private:
  char* bytes_;
  uint32_t base_;
};

// The pieces of a block, one after the other; all lanes of a warp ask together.
template <int kChannels>
class StyledPieces {
 public:
  __device__ explicit StyledPieces(const StyledConvArguments& a) : a_(a) {}

  // Whether there is another one.
  __device__ bool next() {
    index_ = index_ < 0 ? static_cast<int>(blockIdx.x) : after();
    if (index_ >= a_.pieces) return false;
    piece_ = piece_of(a_.segments, index_, StyledSizes<kChannels>::kRows);
    return piece_.segment >= 0;
  }
  __device__ const SegmentPiece& piece() const { return piece_; }
  // The index of the one that follows.
  __device__ int after() const { return index_ + static_cast<int>(gridDim.x); }

 private:
  const StyledConvArguments& a_;
  int index_ = -1;
  SegmentPiece piece_;
};

// By one warp: the weights of every piece, stage after stage: by part of the inputs, tap, inputs.
template <int kChannels>
__device__ inline void stream_styled_weights(const StyledConvArguments& a,
                                             const StyledShared<kChannels>& shared) {
  using Sizes = StyledSizes<kChannels>;
  constexpr int kUnits = Sizes::kStageTiles * kTileBytes / kWeightMapUnit;
  Ring<Sizes::kStages> ring;
  for (StyledPieces<kChannels> pieces(a); pieces.next();) {
    if (threadIdx.x % 32 != 0) continue;
    for (int part = 0; part < Sizes::kParts; ++part)
      for (int tap = 0; tap < a.taps; ++tap)
        for (int i = 0; i < Sizes::kTapStages; ++i, ring.advance()) {
          wait_for_phase(shared.barriers().weights_empty(ring.at), ring.parity ^ 1);
          arrive_expecting(shared.barriers().weights_full(ring.at), Sizes::kStageBytes);
          copy_rectangle(shared.weights(ring.at), a.weights,
                         ((tap * Sizes::kParts + part) * Sizes::kTapStages + i) * kUnits, 0,
                         shared.barriers().weights_full(ring.at));
        }
  }
}

// A lane's four channels of a part: y = snake(scale x + shift).
struct StyledFour {
  float4 scale, shift, alpha, inverse;

  __device__ StyledFour(const StyledConvArguments& a, int channels, int segment, int channel) {
    const float* const factors = a.factors + int64_t{segment} * 2 * channels + channel;
    scale = *reinterpret_cast<const float4*>(factors);
    shift = *reinterpret_cast<const float4*>(factors + channels);
    alpha = __ldg(reinterpret_cast<const float4*>(a.alpha + channel));
    inverse = {__frcp_rn(alpha.x), __frcp_rn(alpha.y), __frcp_rn(alpha.z), __frcp_rn(alpha.w)};
  }
  template <typename T>
  __device__ uint2 rounded_as(const float4& x) const {
    struct alignas(8) {
      T v[4];
    } four = {narrowed_value<T>(near_snake(__fmaf_rn(x.x, scale.x, shift.x), alpha.x, inverse.x)),
              narrowed_value<T>(near_snake(__fmaf_rn(x.y, scale.y, shift.y), alpha.y, inverse.y)),
              narrowed_value<T>(near_snake(__fmaf_rn(x.z, scale.z, shift.z), alpha.z, inverse.z)),
              narrowed_value<T>(near_snake(__fmaf_rn(x.w, scale.w, shift.w), alpha.w, inverse.w))};
    return *reinterpret_cast<const uint2*>(&four);
  }
};

// One part of a piece's rows and of those that it looks at on both sides; a row is a warp's, which has four
// channels a lane. Rows outside of the segment are zeros.
template <typename T, int kChannels>
class StyledRowLoader {
 public:
  using Sizes = StyledSizes<kChannels>;

  // warp: of the row warps.
  __device__ StyledRowLoader(const StyledConvArguments& a, const SegmentPiece& piece, int part, int warp)
      : styled_(a, kChannels, piece.segment, part * kStyledPartChannels + 4 * lane()),
        rows_(Sizes::kRows + (a.taps - 1) * a.dilation),
        row_(warp),
        first_(max(reach(a) - static_cast<int>(min(piece.first, int64_t{rows_})), 0)),
        end_(reach(a) + static_cast<int>(min(a.segments.rows(piece.segment) - piece.first, int64_t{rows_}))),
        x_(a.x + (a.segments.begin(piece.segment) + piece.first - reach(a)) * kChannels +
           part * kStyledPartChannels + 4 * lane()) {}

  // While some rows are computed, the next ones are on their way.
  __device__ void bring(char* to) {
    char* const column = to + (lane() / 2 * Sizes::kPitch) * 16 + lane() % 2 * 8;
    float4 now[kStyledRowsOfWarp], next[kStyledRowsOfWarp];
    load(row_, now);
    for (int row = row_; row < rows_; row += 2 * kStep) {
      load(row + kStep, next);
      store(row, now, column);
      load(row + 2 * kStep, now);
      store(row + kStep, next, column);
    }
  }

 private:
  static constexpr int kStep = kStyledRowWarps * kStyledRowsOfWarp;

  static __device__ int lane() { return static_cast<int>(threadIdx.x % 32); }
  static __device__ int reach(const StyledConvArguments& a) { return (a.taps - 1) * a.dilation / 2; }
  // Whether row m of the buffer is one of the segment's.
  __device__ bool is_inside(int m) const { return first_ <= m && m < end_; }
  // Rows outside are loaded as the nearest one inside: without a condition loads need not wait for others.
  __device__ void load(int row, float4 (&held)[kStyledRowsOfWarp]) const {
#pragma unroll
    for (int i = 0; i < kStyledRowsOfWarp; ++i) {
      const int m = min(max(row + i * kStyledRowWarps, first_), end_ - 1);
      held[i] = *reinterpret_cast<const float4*>(x_ + m * kChannels);
    }
  }
  __device__ void store(int row, const float4 (&held)[kStyledRowsOfWarp], char* column) const {
#pragma unroll
    for (int i = 0; i < kStyledRowsOfWarp; ++i) {
      const int m = row + i * kStyledRowWarps;
      const uint2 four = styled_.template rounded_as<T>(held[i]);
      if (m < rows_) *reinterpret_cast<uint2*>(column + m * 16) = is_inside(m) ? four : uint2{};
    }
  }

  const StyledFour styled_;
  const int rows_, row_;   // of the buffer; the warp's first
  const int first_, end_;  // rows of the buffer that are the segment's
  const float* const x_;   // the lane's channels of the buffer's first row
};

template <int kChannels>
__device__ inline StyledTile tile_of(const StyledConvArguments& a, const SegmentPiece& piece) {
  constexpr int kStep = StyledSizes<kChannels>::kGroupRows;
  const int64_t begin = a.segments.begin(piece.segment);
  return {.first = (begin + piece.first) * kChannels,
          .place = StyledSums::place(begin, piece.segment, piece.first / kStep, kStep),
          .count = static_cast<int>(piece.count)};
}

// Has what a piece will ask for brought nearer, into the second-level cache. By one warp.
template <int kChannels>
__device__ inline void prefetch_styled(const StyledConvArguments& a, int index) {
  if (index >= a.pieces) return;
  const SegmentPiece piece = piece_of(a.segments, index, StyledSizes<kChannels>::kRows);
  if (piece.segment < 0 || threadIdx.x % 32 != 0) return;
  const int64_t first = (a.segments.begin(piece.segment) + piece.first) * kChannels;
  const auto bytes = static_cast<uint32_t>(piece.count * kChannels * 4);
  prefetch_bulk(a.x + first, bytes);
}

// By the row warps, all pieces of the block.
template <typename T, int kChannels>
__device__ inline void load_styled_rows(const StyledConvArguments& a, const StyledShared<kChannels>& shared,
                                        int warp) {
  using Sizes = StyledSizes<kChannels>;
  Ring<Sizes::kBuffers> buffers;
  for (StyledPieces<kChannels> pieces(a); pieces.next();) {
    const SegmentPiece& piece = pieces.piece();
    if (warp == 0) prefetch_styled<kChannels>(a, pieces.after());
    for (int part = 0; part < Sizes::kParts; ++part, buffers.advance()) {
      StyledRowLoader<T, kChannels> loader(a, piece, part, warp);
      wait_for_phase(shared.barriers().rows_empty(buffers.at), buffers.parity ^ 1);
      if (part == 0 && threadIdx.x == 0) shared.tile(buffers.at) = tile_of<kChannels>(a, piece);
      loader.bring(shared.row_bytes(buffers.at));
      show_to_tensor_cores();
      arrive(shared.barriers().rows_full(buffers.at));
    }
  }
  wait_for_phase(shared.barriers().rows_empty(buffers.at), buffers.parity ^ 1);
  if (threadIdx.x == 0) shared.tile(buffers.at).count = 0;
  arrive(shared.barriers().rows_full(buffers.at));
}

}  // namespace shoal::ops::cuda
