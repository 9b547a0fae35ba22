// How weights stream through the shared memory of blocks that stay (streamed.cuh, split.cuh).
#pragma once

#include "ops/cuda/gemm/skinny/streamed_cut.h"
#include "ops/cuda/ptx/mbarrier.cuh"
#include "ops/cuda/ptx/shared_address.cuh"

namespace shoal::ops::cuda {

// The units of a warp: a.block_rows rows of tiles from row `first` on, from `step` rows further on, and so
// on, of those before `end`.
struct StreamedRows {
  int first, end, step;
  int stages;  // of its ring
};

// The tiles of a warp's segment in its units, piece after piece, through a ring.  kBits: of a weight.
// kTileRows: of a unit, at most.  kCounted: addresses are counted up, not multiplied, for one is needed for
// each few kilobytes.
template <int kBits, int kTileRows, bool kCounted>
class StreamedWeights {
 public:
  static constexpr bool kAlwaysStreams = true;
  // Starts the first copies: a.first_stages, or fewer.  barriers: where those of all rings are in `shared`;
  // begin, tiles: the segment's.
  __device__ StreamedWeights(const SkinnyArguments& a, char* shared, int barriers, const StreamedRows& rows,
                             int begin, int tiles)
      : a_(a),
        row_bytes_(static_cast<int>(form().row_bytes(a.row_tiles))),
        begin_(begin),
        tiles_(tiles),
        stages_(rows.stages),
        end_(rows.end),
        step_(rows.step),
        rows_left_(tiles > 0 ? rows.end - rows.first : 0) {
    from_ = start_of_row(rows.first);
    const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
    ring_ = shared + warp * a.segment_bytes();
    barriers_ = shared_address(shared + barriers + warp * kMostStreamedStages * 8);
    if (lane() == 0) {
      for (int stage = 0; stage < stages_; ++stage) init_barrier(barriers_ + stage * 8, 1);
      show_barriers();
    }
    __syncwarp();
    for (int stage = 0; stage < min(a.first_stages, stages_); ++stage) copy();
  }
  // Starts as many more as there is place for. Memory serves in the order of asking: what is asked for before
  // a kernel's inputs stands in their way.
  __device__ void ask_for_rest() {
    for (int stage = a_.first_stages; stage < stages_; ++stage) copy();
  }

  // The next piece; pieces are counted by the ring.
  __device__ void wait(int) const { wait_for_phase(barriers_ + stage_ * 8, parity_); }
  __device__ char* place(int) const { return ring_ + stage_ * a_.stage_bytes(); }
  // All lanes have used it: another one takes its place.
  __device__ void release(int) {
    __syncwarp();
    copy();
    if (++stage_ == stages_) stage_ = 0, parity_ ^= 1;
  }

 private:
  __device__ TileForm form() const { return {kBits, kBits == 4 ? a_.form.shift : 0}; }
  __device__ const char* start_of_row(int tile_row) const {
    return reinterpret_cast<const char*>(a_.weight) + static_cast<int64_t>(tile_row) * row_bytes_;
  }
  static __device__ int lane() { return static_cast<int>(threadIdx.x % 32); }

  __device__ void copy() {
    if (rows_left_ <= 0) return;
    if (lane() == 0) {
      const int count = min(a_.stage_tiles, tiles_ - done_), valid = min(a_.block_rows, rows_left_);
      const auto bytes = static_cast<uint32_t>(form().records(begin_ + done_, count) * form().record_bytes());
      const uint32_t barrier = barriers_ + fill_ * 8;
      const auto to = shared_address(ring_) + fill_ * a_.stage_bytes();
      const int start = form().start_of(begin_ + done_);
      arrive_expecting(barrier, valid * bytes);
      if constexpr (kCounted) {
        const char* from = from_ + start;
#pragma unroll
        for (int r = 0; r < kTileRows; ++r, from += row_bytes_)
          if (r < valid) copy_bulk_once(to + r * a_.place_bytes, from, bytes, barrier);
      } else {
        const char* const from = start_of_row(end_ - rows_left_) + start;
        for (int r = 0; r < valid; ++r)
          copy_bulk_once(to + r * a_.place_bytes, from + static_cast<int64_t>(r) * row_bytes_, bytes,
                         barrier);
      }
    }
    if (++fill_ == stages_) fill_ = 0;
    if ((done_ += a_.stage_tiles) < tiles_) return;
    done_ = 0;
    rows_left_ -= step_;
    from_ += static_cast<int64_t>(step_) * row_bytes_;
  }

  const SkinnyArguments& a_;
  const char* from_;  // the first row of tiles of the unit that is copied next
  char* ring_;
  uint32_t barriers_, parity_ = 0;
  int row_bytes_, begin_, tiles_, stages_, end_, step_;
  int rows_left_;            // of tiles, from that unit on
  int stage_ = 0;            // the next piece's
  int done_ = 0, fill_ = 0;  // of what is copied next: tiles before it, its stage
};

}  // namespace shoal::ops::cuda
