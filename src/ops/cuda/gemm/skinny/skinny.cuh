// y = epilogue(x W^T) for at most 16 rows of x, as at each step of decoding.
//
// Bound by memory: every weight is read once, rows * depth * outputs multiplications are hidden behind it. A
// decode step is hundreds of such kernels of one or two microseconds each, so a kernel asks for all of its
// weights before it waits for its predecessor: it can start while that one still runs (launch.cuh), and when
// its inputs are there, the weights are too. They wait in shared memory, and few registers are needed: two or
// three kernels of the chain fit on a multiprocessor.
//
// A block of eight warps owns a few rows of tiles; warp s computes segment s of them (matrix_layout.cuh), and
// the epilogue adds the segments. Whether x is normed here or before, and how many rows there are, changes no
// bits.
#pragma once

#include <algorithm>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/fp8_tile.cuh"
#include "ops/cuda/gemm/operands/int4_tile.cuh"
#include "ops/cuda/gemm/operands/int8_tile.cuh"
#include "ops/cuda/gemm/skinny/awaited_result.cuh"
#include "ops/cuda/gemm/skinny/skinny_input.cuh"
#include "ops/cuda/gemm/skinny/skinny_weights.cuh"
#include "ops/cuda/ptx/async_copy.cuh"

namespace shoal::ops::cuda {

// half: of the operands' dtype; staged: one such row, by way of shared memory (choose_half_cut).
enum class SkinnyInput { half, f32, normed, staged };

// The results of a block that a thread stores: of 8 (kHigh: 16) rows by 8 outputs for each row of tiles. What
// each warp has summed lies where the first tiles of its segments were.
template <int kTileRows, bool kHigh>
class SkinnyResults {
 public:
  __device__ SkinnyResults(const SkinnyArguments& a, char* shared, int first) : a_(a), shared_(shared) {
    const int rows_of_tiles = a.paired ? a.block_rows / 2 : a.block_rows;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int index = i * kSkinnyThreads + static_cast<int>(threadIdx.x);
      const int tile_row = index / kTileResults, row = index / kTileOutputs % kRows;
      const int n = ((a.paired ? first / 2 : first) + tile_row) * kTileOutputs + index % kTileOutputs;
      results_[i] =
          AwaitedResult(a.epilogue, row, n, tile_row < rows_of_tiles && row < a.rows && n < a.outputs);
      sums_[i] = (a.paired ? 2 : 1) * tile_row * a.row_stride + index % kTileResults * 4;
    }
  }
  // Asks for what y holds.
  __device__ void ask() {
#pragma unroll
    for (AwaitedResult& result : results_) result.ask(a_.epilogue);
  }
  __device__ void store() const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (!results_[i].exists()) continue;
      const char* const from = shared_ + sums_[i];
      const float sum = sum_of_segments(from, a_.segment_stride, a_.segments);
      if (a_.paired)
        results_[i].store_pair(a_.epilogue, sum,
                               sum_of_segments(from + a_.row_stride, a_.segment_stride, a_.segments));
      else
        results_[i].store(a_.epilogue, sum);
    }
  }

 private:
  static constexpr int kRows = kHigh ? 16 : 8, kTileResults = kRows * kTileOutputs;
  static constexpr int kCount = (kTileRows * kTileResults + kSkinnyThreads - 1) / kSkinnyThreads;

  const SkinnyArguments& a_;
  const char* shared_;
  AwaitedResult results_[kCount];
  int sums_[kCount];  // where the first segment's are
};

// Weights as operands: 16 bits as they are, 8 bits times the scales of the lane's outputs, 4 bits times those
// of their groups.
template <typename T, TileWeights kWeights, int kTileRows>
struct TileOperands {
  static constexpr int kBits = bits_of(kWeights);
  using Scale = std::conditional_t<kWeights == TileWeights::fp8, Fp8Scale<T>, TileScale<T>>;  // of 8 bits
  // By which sums are multiplied.
  static constexpr float kUnit = kBits == 4 ? NibbleScale<T>::kUnit : kBits == 8 ? Scale::kUnit : 1.0f;
  Scale scales[kBits == 8 ? kTileRows : 1];
  int place;             // in a tile, in bytes: what the lane reads, or of 16 bits loads for its warp
  int shift = 0, begin;  // of 4 bits: of the form; the segment's first tile

  __device__ TileOperands(const SkinnyArguments& a, int begin_of_segment) : begin(begin_of_segment) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    place =
        kBits < 16 ? lane * (kBits == 8 ? 8 : 4) : (lane % 8 * 4 + swizzled_chunk(lane % 8, lane / 8)) * 16;
    if constexpr (kBits == 4) shift = a.form.shift;
  }
  // values: eight for each of `valid` rows of tiles, of 8-bit weights.
  __device__ void ask_for_scales(const float* values, int valid) {
    if constexpr (kBits == 8)
#pragma unroll
      for (int r = 0; r < kTileRows; ++r)
        scales[r] =
            Scale(__ldg(values + min(r, valid - 1) * kTileOutputs + static_cast<int>(threadIdx.x % 32) / 4));
  }
  // The same from shared memory, of all rows.
  __device__ void set_scales(const float* values) {
    if constexpr (kBits == 8)
#pragma unroll
      for (int r = 0; r < kTileRows; ++r)
        scales[r] = Scale(values[r * kTileOutputs + static_cast<int>(threadIdx.x % 32) / 4]);
  }
  // Where tile `tile` of the segment lies in its record.
  __device__ int tile_in_record(int tile) const {
    return kBits == 4 ? (begin + tile) & ((1 << shift) - 1) : 0;
  }
  // Of row r of the block's, whose records lie `offset` bytes behind `from`: of tile i of them.
  __device__ uint4 load(int r, const char* from, int offset, int i) const {
    if constexpr (kBits == 4) {
      const int record = i >> shift, heads = offset + record * kInt4HeadBytes;
      const NibbleScale<T> scale(*reinterpret_cast<const uint32_t*>(
          from + (heads + (record << shift) * kInt4TileBytes + place / 16 * 4)));
      return scale.operand(
          *reinterpret_cast<const uint32_t*>(from + (heads + kInt4HeadBytes + i * kInt4TileBytes + place)));
    }
    if constexpr (kBits == 8)
      return scales[r].operand(*reinterpret_cast<const uint2*>(from + (offset + i * kInt8TileBytes + place)));
    return load_operand(reinterpret_cast<const uint4*>(from + (offset + i * kTileBytes + place)));
  }
};

// What a lane sums of a segment.  kHigh: of 16 rows of x, else of 8. kTogether: of 8, weights of two rows of
// tiles are one operand of 16 and x is the other, which halves the multiplications; which is which changes no
// bits. (Weights of 16 bits are asked for one row of tiles after the other, and gain nothing by it.)
template <typename T, int kTileRows, bool kHigh, bool kTogether>
class SegmentSums {
 public:
  static_assert(!(kHigh && kTogether));
  static constexpr bool kSixteen = kHigh;

  // low, high: rows of x.  load(r): the tile of row of tiles r.
  template <typename Load>
  __device__ void add(const uint4& low, const uint4& high, const Load& load) {
#pragma unroll
    for (int r = 0; r < kTileRows; r += kStep) {
      const uint4 tile = load(r);
      if constexpr (kTogether)
        multiply_tile<T>(sums_[r / 2], tile, r + 1 < kTileRows ? load(r + 1) : uint4{}, low);
      else
        multiply_tile<T>(sums_[r], low, high, tile);
    }
  }

  // Those of row of tiles r, times unit.  to: [row of x][output].
  __device__ void store(int r, float unit, float* to) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    if constexpr (kTogether) {
      float* const first = to + lane % 4 * 2 * kTileOutputs + lane / 4;
      first[0] = sums_[r / 2][r % 2 * 2] * unit;
      first[kTileOutputs] = sums_[r / 2][r % 2 * 2 + 1] * unit;
    } else {
      float2* const pairs = reinterpret_cast<float2*>(to) + lane;
      pairs[0] = {sums_[r][0] * unit, sums_[r][1] * unit};
      if constexpr (kHigh) pairs[32] = {sums_[r][2] * unit, sums_[r][3] * unit};
    }
  }
  // The same of `rows` rows of x, to a place in the cluster, whose block counts the bytes for its barrier.
  __device__ void send(int r, float unit, uint32_t to, uint32_t barrier, int rows) const {
    static_assert(!kHigh);
    const int lane = static_cast<int>(threadIdx.x % 32);
    if constexpr (kTogether) {
      const int row = lane % 4 * 2;
      to += static_cast<uint32_t>((row * kTileOutputs + lane / 4) * 4);
      if (row < rows) send_to_cluster(to, sums_[r / 2][r % 2 * 2] * unit, barrier);
      if (row + 1 < rows) send_to_cluster(to + kTileOutputs * 4, sums_[r / 2][r % 2 * 2 + 1] * unit, barrier);
    } else if (lane / 4 < rows) {
      send_to_cluster(to + static_cast<uint32_t>(lane) * 8, float2{sums_[r][0] * unit, sums_[r][1] * unit},
                      barrier);
    }
  }

 private:
  static constexpr int kStep = kTogether ? 2 : 1;
  float sums_[(kTileRows + kStep - 1) / kStep][4] = {};
};

// Of sixteen rows, which come from global memory, so few tiles are asked for ahead that what is left of a
// piece is worth a case for each number of them (a layer of S2-Pro on an H200, int8 82.9 -> 78.3 us, int4
// 86.9 -> 80.7).
constexpr int kFewAhead = 4;
// Of rows in shared memory: a short loop, whose second pass finds its code.
constexpr int kTilesTogether = 2;

// what(s) for s = 0 .. count - 1, without a branch between them, so that the loads of all come first. count <
// kMost.
template <int kMost, typename What>
__device__ inline void unrolled(int count, const What& what) {
  if constexpr (kMost > 1) {
    if (count < kMost - 1) return unrolled<kMost - 1>(count, what);
#pragma unroll
    for (int s = 0; s < kMost - 1; ++s) what(s);
  }
}

// Sums of a segment's tiles.  input.take(t % kAhead, t, low, high): the operands of tile t.
// Weights: SegmentWeights, or what gives pieces like it.
template <int kTileRows, int kAhead, typename Weights, typename Operands, typename Input, typename Sums>
__device__ inline void multiply_segment(const SkinnyArguments& a, Weights& weights, const Operands& operands,
                                        Input& input, int tiles, Sums& sums) {
  for (int piece = 0, done = 0; done < tiles; ++piece, done += a.stage_tiles) {
    weights.wait(piece);
    const char* const from = weights.place(piece);
    const int count = min(a.stage_tiles, tiles - done), skipped = operands.tile_in_record(done);
    const auto multiply = [&](int s, int t) {
      uint4 low, high{};
      input.take(s, done + t, low, high);
      // Of a row that there is not: whatever lies there, to no use.
      sums.add(low, high, [&](int r) { return operands.load(r, from, r * a.row_stride, skipped + t); });
    };
    int start = 0;
    for (; start + kAhead <= count; start += kAhead)
#pragma unroll
      for (int s = 0; s < kAhead; ++s) multiply(s, start + s);
    if constexpr (Sums::kSixteen && kAhead <= kFewAhead) {
      unrolled<kAhead>(count - start, [&](int s) { multiply(s, start + s); });
    } else {
#pragma unroll
      for (int s = 0; s < kAhead; ++s) {
        if (start + s >= count) break;
        multiply(s, start + s);
      }
    }
    if constexpr (kTileRows > kMostStreamedRows && !Weights::kAlwaysStreams) break;  // there is one piece
    weights.release(piece);
  }
}

// 64 or 80 registers: four or three blocks fit a multiprocessor, as far as shared memory allows.
template <typename T, TileWeights kWeights, SkinnyInput kInput, int kTileRows, bool kHigh>
__global__ void __launch_bounds__(kSkinnyThreads, kTileRows == 2 ? 4 : 3)
    skinny_kernel(const SkinnyArguments a) {
  constexpr int kBits = bits_of(kWeights);
  extern __shared__ uint4 shared_vectors[];
  char* shared = reinterpret_cast<char*>(shared_vectors);
  const SkinnyShared at(a);
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
  const int first = static_cast<int>(blockIdx.x) * a.block_rows,
            valid = min(a.block_rows, a.tile_rows - first);
  const int begin = min(warp * a.segment_tiles, a.row_tiles),
            tiles = min(a.segment_tiles, a.row_tiles - begin);
  if (kInput == SkinnyInput::normed) load_norm(a, at, shared);
  using Operands = TileOperands<T, kWeights, kTileRows>;
  [[maybe_unused]] const OneNormedRow<T> one_row(a, kInput == SkinnyInput::normed && a.rows == 1);
  SegmentWeights<kBits> weights(a, at, shared, first, valid, begin, tiles);
  Operands operands(a, begin);
  operands.ask_for_scales(a.scales + first * kTileOutputs, valid);
  SkinnyResults<kTileRows, kHigh> results(a, shared, first);
  wait_for_inputs();
  results.ask();
  SegmentSums<T, kTileRows, kHigh, kBits == 8 && !kHigh> sums;
  if constexpr (kInput == SkinnyInput::normed) {
    static_assert(!kHigh, "at most kNormRows are normed");
    if (a.rows == 1)
      one_row.stage(a, at, shared, [] {});
    else
      stage_normed<T>(a, at, shared, [] {});
    NormedInput input(a, at, shared, begin);
    multiply_segment<kTileRows, kTilesTogether>(a, weights, operands, input, tiles, sums);
  } else if constexpr (kInput == SkinnyInput::staged) {
    stage_rows(a, at, shared, 0, a.row_tiles * 4, [] {});
    NormedInput input(a, at, shared, begin);
    multiply_segment<kTileRows, kTilesTogether>(a, weights, operands, input, tiles, sums);
  } else {
    constexpr bool kFloat = kInput == SkinnyInput::f32;
    constexpr int kAhead = std::max(tiles_ahead(kTileRows) / (kHigh ? 2 : 1) / (kFloat ? 2 : 1), 1);
    DirectInput<T, kFloat, kHigh, kAhead> input(a, begin, tiles);
    multiply_segment<kTileRows, kAhead>(a, weights, operands, input, tiles, sums);
  }

  __syncwarp();
  if (tiles > 0) {
#pragma unroll
    for (int r = 0; r < kTileRows; ++r) {
      if (r >= valid) break;
      sums.store(r, Operands::kUnit, reinterpret_cast<float*>(weights.place(0) + r * a.row_stride));
    }
  }
  __syncthreads();
  results.store();
}

}  // namespace shoal::ops::cuda
