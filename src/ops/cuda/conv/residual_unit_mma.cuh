// Whole residual units in one kernel, for 16-bit weights and the tensor cores of every GPU (mma.sync):
// y = x + conv1(snake(conv7(snake(x)))).
//
// A block goes through neighbouring pieces of 64 rows. Its threads bring a piece through the snake into
// shared memory, behind the rows that it looks back at; so a tap is the same operand begun some rows later.
// Each warp multiplies all rows by its own outputs' weights, which come from the second-level cache straight
// into registers, one tile of inputs ahead. The result passes through the second snake and takes the place
// of the piece's first 64 rows, where the narrow convolution reads it; the rows behind those stay, and are
// what the next piece looks back at.
//
// Bound: 64 rows by channels^2 x 8 multiplications read channels^2 x 16 bytes of weights: at the 1024
// multiplications a cycle of an A100's multiprocessor 32 bytes a cycle from the second-level cache, about
// what it gives; and a warp's 64 rows by 24 outputs by 32 inputs move 4 KiB of rows, 1.5 KiB of weights and
// 1.5 KiB of their transposition through the first-level one.
//
// Sums run in the order of matrix_layout.cuh: the bits are those of the two products one by one.
#pragma once

#include "ops/cuda/conv/residual_unit_mma_sizes.cuh"
#include "ops/cuda/conv/residual_unit_rows.cuh"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/product_epilogue.cuh"
#include "ops/cuda/gemm/operands/quad_store.cuh"
#include "ops/cuda/gemm/operands/tile_store.cuh"
#include "ops/cuda/ptx/async_copy.cuh"
#include "ops/cuda/ptx/mma.cuh"

namespace shoal::ops::cuda {

// Neighbouring rows of tiles of a matrix, a lane's 16 bytes of each tile.
struct UnitTileRows {
  const uint4* first;
  int tiles;  // of a row

  // weights: of the matrix;  row: the first one of `tiles` tiles each.
  __device__ UnitTileRows(const void* weights, int row, int row_tiles)
      : first(static_cast<const uint4*>(weights) + row * row_tiles * 32 + lane_chunk()), tiles(row_tiles) {}
  __device__ static int lane_chunk() {
    const int lane = static_cast<int>(threadIdx.x % 32);
    return lane / 4 * 4 + swizzled_chunk(lane / 4, lane % 4);
  }
};

// A warp's weights, kRows rows of tiles at a time, one tile of each on its way.
template <int kRows>
class UnitWeights {
 public:
  __device__ explicit UnitWeights(const UnitTileRows& rows) : at_(rows.first), pitch_(rows.tiles * 32) {
#pragma unroll
    for (int n = 0; n < kRows; ++n) raw_[n] = load_weight(at_ + n * pitch_);
  }
  // From the first tile of `rows` on, which are on their way; behind their last ones come those of `next`.
  __device__ void enter(const UnitTileRows& rows, const UnitTileRows& next) {
    at_ = rows.first + 32;
    end_ = rows.first + rows.tiles * 32;
    pitch_ = rows.tiles * 32;
    next_ = next.first;
    next_pitch_ = next.tiles * 32;
  }
  // Row n of the tile that has come, as an operand; the next one takes its place on the way.
  __device__ uint4 take(int n) {
    const uint4 operand = operand_of_chunks(raw_[n]);
    raw_[n] = load_weight(at_ + n * pitch_);
    return operand;
  }
  // Behind take() of all rows.
  __device__ void advance() {
    at_ += 32;
    const bool ended = at_ == end_;
    at_ = ended ? next_ : at_;
    pitch_ = ended ? next_pitch_ : pitch_;
  }

 private:
  const uint4 *at_, *end_ = nullptr, *next_ = nullptr;  // at_: of what is asked for next
  int pitch_, next_pitch_ = 0;
  uint4 raw_[kRows];
};

template <typename T, int kChannels>
class UnitBlock {
 public:
  using Sizes = MmaUnitSizes<kChannels>;

  __device__ UnitBlock(const UnitArguments& arguments, char* rows)
      : a_(arguments),
        rows_(rows),
        warp_(static_cast<int>(threadIdx.x / 32)),
        lane_(static_cast<int>(threadIdx.x % 32)) {}

  // Weights are asked for before the inputs are there.
  __device__ void run() {
    Weights weights(wide_rows(0));
    wait_for_inputs();
    for (Pieces pieces(a_.source); pieces.has_piece(); pieces.next()) {
      bring(pieces);
      __syncthreads();
      uint32_t between[Sizes::kParts][kTiles][Sizes::kRowTiles][2];  // two channels each
#pragma unroll
      for (int part = 0; part < Sizes::kParts; ++part) {
        weights.enter(wide_rows(part), part + 1 < Sizes::kParts ? wide_rows(part + 1) : narrow_rows(0));
        convolve_wide(weights, part, between[part]);
      }
      __syncthreads();  // the rows have been read
#pragma unroll
      for (int part = 0; part < Sizes::kParts; ++part) store_between(part, between[part]);
      __syncthreads();
#pragma unroll 1
      for (int part = 0; part < Sizes::kParts; ++part) {
        weights.enter(narrow_rows(part), part + 1 < Sizes::kParts ? narrow_rows(part + 1) : wide_rows(0));
        convolve_narrow(weights, part, pieces);
      }
      __syncthreads();  // what is between has been read
    }
  }

 private:
  static constexpr int kTiles = Sizes::kOutputTiles;
  using Pieces = UnitPieces<Sizes::kRows>;
  using Weights = UnitWeights<kTiles>;
  using Sums = float[Sizes::kRowTiles][kTiles][4];  // of 16 rows by 8 outputs, in the fragments of mma
  static constexpr DType kDType = std::is_same_v<T, __nv_bfloat16> ? DType::bf16 : DType::f16;

  // The rows of a piece and what it looks back at -> shared memory.
  __device__ void bring(const Pieces& piece) {
    using Rows = UnitRows<T, Sizes, Sizes::kRowThreads, Sizes::kRowsOfThread>;
    const int thread = static_cast<int>(threadIdx.x);
    if (piece.follows()) {
      move_look_back();
      __syncthreads();
    }
    if (Sizes::kRowThreads == Sizes::kThreads || thread < Sizes::kRowThreads) {
      const int c = 4 * Rows::quad_of(thread);
      const float4 alpha = four_at(a_.source.alpha + c);
      const Rows rows(
          a_, thread,
          {alpha,
           {snake_inverse(alpha.x), snake_inverse(alpha.y), snake_inverse(alpha.z), snake_inverse(alpha.w)}});
      typename Rows::Batch values;
      const typename Rows::Place place = rows.place_of(piece);
      rows.load(place, 0, values);
      char* const column = rows.column(rows_);
      if (!piece.follows()) rows.bring_look_back(piece, column);
      rows.bring(place, values, column);
    }
    prefetch_next(piece);
  }
  // The end of the piece before is what this one looks back at.
  __device__ void move_look_back() {
    constexpr int kChunks = kChannels / 8, kTogether = 4;  // 16 bytes each; of a thread on their way
    const int all = a_.source.look_back * kChunks;
    const auto chunk_at = [&](int row, int item) {
      return reinterpret_cast<uint4*>(rows_ + (row + item / kChunks) * Sizes::kRowBytes) + item % kChunks;
    };
    for (int first = static_cast<int>(threadIdx.x); first < all; first += kTogether * Sizes::kThreads) {
      uint4 values[kTogether];
#pragma unroll
      for (int i = 0; i < kTogether; ++i)
        values[i] = *chunk_at(Sizes::kRows, min(first + i * Sizes::kThreads, all - 1));
#pragma unroll
      for (int i = 0; i < kTogether; ++i)
        if (const int item = first + i * Sizes::kThreads; item < all) *chunk_at(0, item) = values[i];
    }
  }
  // Has the rows that follow in the sequence brought nearer, into the second-level cache.
  __device__ void prefetch_next(const Pieces& piece) const {
    constexpr int kSector = 8;  // floats
    const int rows = min(piece.rows() - Sizes::kRows, Sizes::kRows);
    const float* const from = a_.source.x + (piece.begin() + piece.first() + Sizes::kRows) * kChannels;
    if (piece.left() > 1)
      for (int i = static_cast<int>(threadIdx.x) * kSector; i < rows * kChannels;
           i += Sizes::kThreads * kSector)
        prefetch_sector(from + i);
  }

  // Outputs are dealt out to parts, then to warps.
  __device__ int first_tile(int part) const { return (part * Sizes::kWarps + warp_) * kTiles; }
  __device__ UnitTileRows wide_rows(int part) const {
    return {a_.wide_weights, first_tile(part), kUnitTaps * Sizes::kTapTiles};
  }
  __device__ UnitTileRows narrow_rows(int part) const {
    return {a_.narrow_weights, first_tile(part), Sizes::kTapTiles};
  }
  // Where the lane's eight channels of its row of an operand lie, from row 0 on (multiply).
  __device__ const char* operand_rows() const {
    return rows_ + lane_ % 16 * Sizes::kRowBytes + lane_ / 16 * 16;
  }

  // sums += the products over one tile of 32 inputs, which begins at `rows`. 16 rows by 16 inputs are loaded
  // as one operand: lanes 0 .. 15 say where the first eight inputs of a row are, the others the next eight.
  __device__ static void multiply(const char* rows, Weights& weights, Sums& sums) {
    uint4 low[Sizes::kRowTiles], high[Sizes::kRowTiles];
#pragma unroll
    for (int m = 0; m < Sizes::kRowTiles; ++m) {
      const auto* const from = reinterpret_cast<const uint4*>(rows + m * 16 * Sizes::kRowBytes);
      low[m] = load_operand(from);
      high[m] = load_operand(from + 2);
    }
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      const uint4 w = weights.take(n);
#pragma unroll
      for (int m = 0; m < Sizes::kRowTiles; ++m)
        multiply_16<T>(sums[m][n], low[m].x, low[m].y, low[m].z, low[m].w, w.x, w.y);
#pragma unroll
      for (int m = 0; m < Sizes::kRowTiles; ++m)
        multiply_16<T>(sums[m][n], high[m].x, high[m].y, high[m].z, high[m].w, w.z, w.w);
    }
    weights.advance();
  }
  __device__ static void add(Sums& totals, const Sums& sums) {
#pragma unroll
    for (int m = 0; m < Sizes::kRowTiles; ++m)
#pragma unroll
      for (int n = 0; n < kTiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) totals[m][n][i] = __fadd_rn(totals[m][n][i], sums[m][n][i]);
  }

  // One part of what the wide convolution makes of the rows, through the second snake.
  __device__ void convolve_wide(Weights& weights, int part,
                                uint32_t (&between)[kTiles][Sizes::kRowTiles][2]) {
    Sums totals = {};
    const char* tap_rows = operand_rows();
#pragma unroll 1
    for (int tap = 0; tap < kUnitTaps; ++tap, tap_rows += a_.dilation * Sizes::kRowBytes) {
      Sums sums = {};
#pragma unroll 1
      for (int tile = 0; tile < Sizes::kTapTiles; ++tile) multiply(tap_rows + tile * 64, weights, sums);
      add(totals, sums);
    }
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      const int c = (first_tile(part) + n) * kTileOutputs + lane_ % 4 * 2;
      const float2 bias = a_.wide_bias ? pair_at(a_.wide_bias + c) : float2{0.0f, 0.0f},
                   alpha = pair_at(a_.narrow_alpha + c);
      const float2 inverse = {snake_inverse(alpha.x), snake_inverse(alpha.y)};
#pragma unroll
      for (int m = 0; m < Sizes::kRowTiles; ++m)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float* const sum = &totals[m][n][2 * i];
          const float low = epilogue_value(sum[0], bias.x, 1.0f, 0.0f, Activation::none);
          const float high = epilogue_value(sum[1], bias.y, 1.0f, 0.0f, Activation::none);
          between[n][m][i] =
              rounded_pair(kDType, near_snake(low, alpha.x, inverse.x), near_snake(high, alpha.y, inverse.y));
        }
    }
  }
  __device__ void store_between(int part, const uint32_t (&between)[kTiles][Sizes::kRowTiles][2]) {
    char* const to = rows_ + lane_ / 4 * Sizes::kRowBytes + lane_ % 4 * 4 + first_tile(part) * 16;
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
#pragma unroll
      for (int m = 0; m < Sizes::kRowTiles; ++m)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          *reinterpret_cast<uint32_t*>(to + (m * 16 + i * 8) * Sizes::kRowBytes + n * 16) = between[n][m][i];
  }

  // One part of the outputs of the narrow convolution, and x with them -> y.
  __device__ void convolve_narrow(Weights& weights, int part, const Pieces& piece) {
    Sums totals = {};
    const char* const rows = operand_rows();
#pragma unroll 1
    for (int tile = 0; tile < Sizes::kTapTiles; tile += Sizes::kSegmentTiles) {
      Sums sums = {};
#pragma unroll
      for (int i = 0; i < Sizes::kSegmentTiles; ++i) multiply(rows + (tile + i) * 64, weights, sums);
      add(totals, sums);
    }
    store(totals, part, piece);
  }

  // All that x holds where the part goes is asked for at once, in the place of the sums.
  __device__ void store(const Sums& totals, int part, const Pieces& piece) const {
    const int first_row = lane_ / 4 + row_of_quad() * 8,
              first_output = first_tile(part) * kTileOutputs + quad_column_of_eight();
    const int64_t begin = piece.begin() + piece.first();
    float4 before[Sizes::kRowTiles][kTiles];
#pragma unroll
    for (int m = 0; m < Sizes::kRowTiles; ++m) {
      const float* const from =
          a_.source.x + (begin + min(m * 16 + first_row, piece.rows() - 1)) * kChannels + first_output;
#pragma unroll
      for (int n = 0; n < kTiles; ++n)
        before[m][n] = __ldcs(reinterpret_cast<const float4*>(from + n * kTileOutputs));  // its last use
    }
    const int64_t ready_offset = a_.ready ? (piece.sequence() + 1) * a_.ready_look_back : 0;
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      const int output = first_output + n * kTileOutputs;
      const float4 bias = a_.narrow_bias ? four_at(a_.narrow_bias + output) : float4{};
#pragma unroll
      for (int m = 0; m < Sizes::kRowTiles; ++m) {
        const float4 own = quad_of_eight(totals[m][n]), x = before[m][n];
        const float4 y = {epilogue_value(own.x, bias.x, 1.0f, x.x, Activation::none),
                          epilogue_value(own.y, bias.y, 1.0f, x.y, Activation::none),
                          epilogue_value(own.z, bias.z, 1.0f, x.z, Activation::none),
                          epilogue_value(own.w, bias.w, 1.0f, x.w, Activation::none)};
        if (m * 16 + first_row >= piece.rows()) continue;
        const int64_t at = (begin + m * 16 + first_row + ready_offset) * kChannels + output;
        if (a_.ready)
          store_past_first_cache(static_cast<T*>(a_.ready) + at, made_ready(y, output));
        else
          store_past_first_cache(a_.y + at, y);
      }
    }
  }
  // Four outputs from `c` on, through the reader's snake.
  __device__ uint2 made_ready(const float4& y, int c) const {
    const float4 alpha = four_at(a_.ready_alpha + c);
    return {rounded_pair(kDType, near_snake(y.x, alpha.x, snake_inverse(alpha.x)),
                         near_snake(y.y, alpha.y, snake_inverse(alpha.y))),
            rounded_pair(kDType, near_snake(y.z, alpha.z, snake_inverse(alpha.z)),
                         near_snake(y.w, alpha.w, snake_inverse(alpha.w)))};
  }

  // Factors are constant, as weights are.
  __device__ static float2 pair_at(const float* from) { return __ldg(reinterpret_cast<const float2*>(from)); }
  __device__ static float4 four_at(const float* from) { return __ldg(reinterpret_cast<const float4*>(from)); }

  const UnitArguments& a_;
  char* const rows_;
  const int warp_, lane_;
};

template <typename T, int kChannels>
__global__ void __launch_bounds__(MmaUnitSizes<kChannels>::kThreads, MmaUnitSizes<kChannels>::kBlocks)
    mma_unit_kernel(const __grid_constant__ UnitArguments arguments) {
  extern __shared__ __align__(16) char shared_bytes[];
  UnitBlock<T, kChannels>(arguments, shared_bytes).run();
}

}  // namespace shoal::ops::cuda
