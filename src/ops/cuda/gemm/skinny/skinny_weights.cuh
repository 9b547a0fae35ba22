// How a segment of a block's weights gets into shared memory: the bulk copy engine writes it there, without
// registers or threads, from before the kernel's inputs are there (Hopper and later; on other GPUs each lane
// copies 16 bytes at a time).
#pragma once

#include "ops/cuda/gemm/skinny/skinny_arguments.cuh"
#include "ops/cuda/ptx/async_copy.cuh"
#include "ops/cuda/ptx/mbarrier.cuh"
#include "ops/cuda/ptx/shared_address.cuh"

namespace shoal::ops::cuda {

// The tiles of one segment in the rows of tiles of a block, for one warp. In shared memory: stage by stage,
// in each the rows of tiles one after the other.  kBits: of a weight.
template <int kBits>
class SegmentWeights {
 public:
  static constexpr bool kAlwaysStreams = false;  // more than kMostStreamedRows rows of tiles are one piece
  // Starts the copies of what there is place for. first: the block's first row of tiles, of which `valid`
  // exist; begin, tiles: the segment's.
  __device__ SegmentWeights(const SkinnyArguments& a, const SkinnyShared& at, char* shared, int first,
                            int valid, int begin, int tiles)
      : a_(a), valid_(valid), begin_(begin), tiles_(tiles) {
    const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
    from_ = reinterpret_cast<const char*>(a.weight) + first * form().row_bytes(a.row_tiles);
    to_ = shared + warp * a.segment_stride;
#if __CUDA_ARCH__ >= 900
    if (a.joined) {
      barriers_ = shared_address(shared + at.barriers);
      if (threadIdx.x == 0) {
        init_barrier(barriers_, 1);
        show_barriers();
        arrive_expecting(barriers_, valid * a.row_stride);
        copy_bulk_once(shared_address(shared), from_, valid * a.row_stride, barriers_);
      }
      __syncthreads();
      return;
    }
    barriers_ = shared_address(shared + at.barriers + warp * kMostStages * 8);
    if (lane() == 0) {
      for (int stage = 0; stage < a.stages; ++stage) init_barrier(barriers_ + stage * 8, 1);
      show_barriers();
    }
    __syncwarp();
#endif
    for (int piece = 0; piece < a.stages; ++piece) copy(piece);
    const int open = a.stages * a.stage_tiles;  // what follows is brought nearer
    if (tiles > open && lane() < valid)
      prefetch_weights(from_ + lane() * form().row_bytes(a.row_tiles) + form().start_of(begin + open),
                       bytes_of(begin + open, tiles - open));
  }

  // Waits for piece `piece`: tiles [piece * stage_tiles, (piece + 1) * stage_tiles) of each row. Pieces are
  // waited for in order.
  __device__ void wait(int piece) const {
#if __CUDA_ARCH__ >= 900
    const bool one = a_.stages == 1;
    wait_for_phase(barriers_ + (one ? 0 : piece % a_.stages * 8), one ? 0 : piece / a_.stages % 2);
#else
    if (a_.stages == 1)
      wait_for_copies();
    else if (a_.stages == 2)
      wait_for_copy_groups<1>();
    else
      wait_for_copy_groups<2>();
    __syncwarp();
#endif
  }

  // Where its records are: of row r from r * row_stride on.
  __device__ char* place(int piece) const {
    return a_.stages == 1 ? to_ : to_ + piece % a_.stages * a_.stage_bytes();
  }

  // All lanes have used a piece: another one may take its place.
  __device__ void release(int piece) {
    if (a_.stages == 1) return;
    __syncwarp();
    copy(piece + a_.stages);
  }

 private:
  __device__ TileForm form() const { return {kBits, kBits == 4 ? a_.form.shift : 0}; }
  __device__ int bytes_of(int begin, int tiles) const {
    return form().records(begin, tiles) * form().record_bytes();
  }
  static __device__ int lane() { return static_cast<int>(threadIdx.x % 32); }

  __device__ void copy(int piece) {
    const int done = piece * a_.stage_tiles, count = min(a_.stage_tiles, tiles_ - done);
    const char* const from = from_ + form().start_of(begin_ + done);
    const int64_t row_bytes = form().row_bytes(a_.row_tiles);
    const int bytes = bytes_of(begin_ + done, count);
    char* const to = place(piece);
#if __CUDA_ARCH__ >= 900
    if (count <= 0 || lane() != 0) return;
    const uint32_t barrier = barriers_ + piece % a_.stages * 8;
    arrive_expecting(barrier, valid_ * bytes);
    for (int r = 0; r < valid_; ++r)
      copy_bulk_once(shared_address(to + r * a_.place_bytes), from + r * row_bytes, bytes, barrier);
#else
    for (int r = 0; r < valid_; ++r)
      for (int at = lane() * 16; at < bytes; at += 32 * 16)
        copy_async<16>(to + r * a_.place_bytes + at, from + r * row_bytes + at);
    end_copy_group();
#endif
  }

  const SkinnyArguments& a_;
  const char* from_;  // the block's first row of tiles
  char* to_;
  uint32_t barriers_ = 0;
  int valid_, begin_, tiles_;
};

}  // namespace shoal::ops::cuda
