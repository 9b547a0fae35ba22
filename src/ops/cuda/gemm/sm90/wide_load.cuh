// How operands get into the stages of wide.cuh: one warp of the loading warpgroup copies weights, in bulk,
// another rows of x, in bulk as well; or three, 16 bytes at a time, where each row's taps begin elsewhere. A
// stage holds up to plan.stage_tiles tiles of one segment:
//   rows of x:  [tile][8 rows each][512 bytes, swizzled], or [pair of tiles][8 rows each][1,024 bytes]
//   weights:    [copy][8 outputs each][tile of the copy][512 bytes as they lie in memory]
#pragma once

#include "ops/cuda/gemm/operands/operand_map.cuh"
#include "ops/cuda/gemm/sm90/stage_ring.cuh"
#include "ops/cuda/gemm/sm90/wide_arguments.cuh"
#include "ops/cuda/ptx/async_copy.cuh"
#include "ops/cuda/ptx/mbarrier.cuh"

namespace shoal::ops::cuda {

template <int kShape>
struct WideSizes {
  static constexpr WideShape kThis = kWideShapes[kShape];
  static constexpr int kRows = kThis.rows(), kOutputs = kThis.outputs;
  static constexpr int kSums = kOutputs / 2;                                  // of a thread
  static constexpr int kRowBytes = kRows * 64, kWeightBytes = kOutputs * 64;  // of a tile
  static constexpr int kRowWarps = 3;
  static constexpr int kConsumerWarps = 4 * kThis.row_groups;
  // Unsplit, a warp's sums pass through shared memory this many outputs at a time.
  static constexpr int kChunk = kOutputs % kWideChunk == 0 ? kWideChunk : kWideChunk / 2;
  static constexpr int kSumPitch = (kThis.split ? kOutputs : kChunk) + kWideSumPadding;  // floats
};

// The layout of a block's shared memory.
template <int kShape>
struct WideShared {
  using Sizes = WideSizes<kShape>;
  const WidePlan& plan;
  uint32_t base;

  __device__ uint32_t rows(int stage) const {
    return base + static_cast<uint32_t>(stage * plan.stage_tiles) * (Sizes::kRowBytes + Sizes::kWeightBytes);
  }
  __device__ uint32_t weights(int stage) const {
    return rows(stage) + static_cast<uint32_t>(plan.stage_tiles * Sizes::kRowBytes);
  }
  __device__ uint32_t full(int stage) const {
    return base + static_cast<uint32_t>(plan.barriers_offset + stage * 8);
  }
  __device__ uint32_t empty(int stage) const { return full(plan.stages + stage); }

  // By one thread.
  __device__ void init_barriers(bool has_row_map) const {
    for (int stage = 0; stage < plan.stages; ++stage) {
      init_barrier(full(stage), has_row_map ? 2 : 1 + 32 * Sizes::kRowWarps);
      init_barrier(empty(stage), Sizes::kConsumerWarps);
    }
    show_barriers();
  }
};

// The results of a block, one after the other, and its segments of each. The dimension with fewer blocks
// (rows or outputs) runs fastest, so that concurrent blocks share what they read.
template <int kShape>
struct WideWork {
  static constexpr bool kBySegment = kWideShapes[kShape].by_segment;
  const WideArguments& arguments;
  int result, results, step;
  int segment_begin, segment_end;

  __device__ explicit WideWork(const WideArguments& a)
      : arguments(a), results(a.tile.row_blocks * a.tile.output_blocks) {
    const int rank = a.cluster > 1 ? static_cast<int>(rank_in_cluster()) : 0;
    result = static_cast<int>(blockIdx.x) / a.cluster;
    step = static_cast<int>(gridDim.x) / a.cluster;
    segment_begin = min(rank * a.plan.local_segments, a.tile.segments);
    segment_end = min(segment_begin + a.plan.local_segments, a.tile.segments);
    if constexpr (kBySegment) results *= a.tile.segments, find_segment();
  }
  __device__ bool has_result() const { return result < results; }
  __device__ void next() {
    result += step;
    if constexpr (kBySegment) find_segment();
  }
  __device__ int row_block() const {
    const TileArguments& t = arguments.tile;
    return t.row_blocks <= t.output_blocks ? place() % t.row_blocks : place() / t.output_blocks;
  }
  __device__ int output_block() const {
    const TileArguments& t = arguments.tile;
    return t.row_blocks <= t.output_blocks ? place() / t.row_blocks : place() % t.output_blocks;
  }
  // Calls what(first tile, tiles) for each stage of the block's segments of a result.
  template <typename What>
  __device__ void for_stages(What&& what) const {
    const TileArguments& t = arguments.tile;
    const int end = min(segment_end * t.segment_tiles, t.row_tiles);
    for (int tile = segment_begin * t.segment_tiles; tile < end;) {
      const int segment_stop = min((tile / t.segment_tiles + 1) * t.segment_tiles, end);
      for (; tile < segment_stop; tile += arguments.plan.stage_tiles)
        what(tile, min(arguments.plan.stage_tiles, segment_stop - tile));
      tile = segment_stop;
    }
  }

 private:
  // Among the results of a segment.
  __device__ int place() const {
    if constexpr (kBySegment) return result % (arguments.tile.row_blocks * arguments.tile.output_blocks);
    return result;
  }
  __device__ void find_segment() {
    segment_begin = result / (arguments.tile.row_blocks * arguments.tile.output_blocks);
    segment_end = segment_begin + 1;
  }
};

// By one thread. Weights are constant: the first stages are fetched before the inputs are ready. A stage that
// is not full also loads the next segment's tiles, which are not read.
template <int kShape>
__device__ inline void load_weights(const WideArguments& arguments, const WideShared<kShape>& shared) {
  using Sizes = WideSizes<kShape>;
  constexpr int kTileRows = Sizes::kOutputs / kTileOutputs, kTileUnits = kTileBytes / kWeightMapUnit;
  const auto bytes = static_cast<uint32_t>(shared.plan.stage_tiles * Sizes::kWeightBytes);
  StageRing ring;
  for (WideWork<kShape> work(arguments); work.has_result(); work.next()) {
    const int first = work.output_block() * kTileRows;
    work.for_stages([&](int tile, int) {
      wait_for_phase(shared.empty(ring.stage), ring.parity ^ 1);
      arrive_expecting(shared.full(ring.stage), bytes);
      for (int i = 0; i < shared.plan.stage_tiles; i += shared.plan.copy_tiles) {
        const uint32_t to = shared.weights(ring.stage) + static_cast<uint32_t>(i * Sizes::kWeightBytes);
        const int unit = (tile + i) * kTileUnits;
        if (arguments.reads_once)
          copy_rectangle_once(to, arguments.weights, unit, first, shared.full(ring.stage));
        else
          copy_rectangle(to, arguments.weights, unit, first, shared.full(ring.stage));
      }
      ring.advance(shared.plan.stages);
    });
  }
}

// By one thread, with a row map. Missing rows and the data after a row's end are zeros.
template <int kShape>
__device__ inline void load_mapped_rows(const WideArguments& arguments, const WideShared<kShape>& shared) {
  using Sizes = WideSizes<kShape>;
  const int tap_tiles = arguments.tile.tap_tiles;
  StageRing ring;
  for (WideWork<kShape> work(arguments); work.has_result(); work.next()) {
    const int first_row = work.row_block() * Sizes::kRows;
    work.for_stages([&](int tile, int tiles) {
      const uint32_t full = shared.full(ring.stage);
      wait_for_phase(shared.empty(ring.stage), ring.parity ^ 1);
      arrive_expecting(full, static_cast<uint32_t>(tiles * Sizes::kRowBytes));
      int tap = tile / tap_tiles, of_tap = tile - tap * tap_tiles;
      for (int i = 0; i < tiles; i += arguments.map_tiles) {
        copy_rectangle(shared.rows(ring.stage) + static_cast<uint32_t>(i * Sizes::kRowBytes), arguments.rows,
                       of_tap * kTileInputs, first_row + tap * arguments.tap_rows, full);
        if ((of_tap += arguments.map_tiles) == tap_tiles) of_tap = 0, ++tap;
      }
      ring.advance(shared.plan.stages);
    });
  }
}

// Without one. By warp `warp` of kRowWarps, which copies every third group of eight rows: lane 4 r + c the 16
// bytes c of row r. Missing rows and the data after a row's end are zeros.
template <int kShape>
__device__ inline void load_rows(const WideArguments& arguments, const WideShared<kShape>& shared, int warp) {
  using Sizes = WideSizes<kShape>;
  constexpr int kEights = Sizes::kRows / 8, kMost = (kEights + Sizes::kRowWarps - 1) / Sizes::kRowWarps;
  const TileArguments& a = arguments.tile;
  const int lane = static_cast<int>(threadIdx.x % 32), row_of_eight = lane / 4;
  const auto to_lane =
      static_cast<uint32_t>(warp * 512 + row_of_eight * 64 + swizzled_chunk(row_of_eight, lane % 4) * 16);
  StageRing ring;
  for (WideWork<kShape> work(arguments); work.has_result(); work.next()) {
    const int64_t first_row = static_cast<int64_t>(work.row_block()) * Sizes::kRows + warp * 8 + row_of_eight;
    uint32_t rows[kMost];
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
      const int64_t row = min(first_row + i * (8 * Sizes::kRowWarps), a.rows - 1);
      rows[i] = static_cast<uint32_t>(a.first_rows[row]) * a.row_stride;
    }
    work.for_stages([&](int tile, int tiles) {
      wait_for_phase(shared.empty(ring.stage), ring.parity ^ 1);
      const int tap = tile / a.tap_tiles;
      int chunk = (tile - tap * a.tap_tiles) * 4 + lane % 4;
      const uint4* from = a.x + static_cast<int64_t>(tap) * a.tap_stride + chunk;
      uint32_t to = shared.rows(ring.stage) + to_lane;
      for (int i = 0; i < tiles; ++i, chunk += 4, from += 4, to += Sizes::kRowBytes) {
        const bool present = chunk < a.depth_chunks;
#pragma unroll
        for (int j = 0; j < kMost; ++j) {
          if (kEights % Sizes::kRowWarps != 0 && j * Sizes::kRowWarps + warp >= kEights) break;
          const bool exists = present && first_row + j * (8 * Sizes::kRowWarps) < a.rows;
          copy_or_zero(to + static_cast<uint32_t>(j * Sizes::kRowWarps * 512), exists ? from + rows[j] : a.x,
                       exists);
        }
      }
      arrive_when_copied(shared.full(ring.stage));
      ring.advance(shared.plan.stages);
    });
  }
}

}  // namespace shoal::ops::cuda
