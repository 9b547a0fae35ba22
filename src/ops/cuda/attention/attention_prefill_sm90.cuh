// What the warps of attention_prefill_sm90.cu share: the ring of tiles through which keys and values pass,
// and the warp that fills it.
#pragma once

#include "ops/cuda/attention/attention_prefill.cuh"
#include "ops/cuda/gemm/sm90/stage_ring.cuh"
#include "ops/cuda/ptx/mbarrier.cuh"

namespace shoal::ops::cuda {

constexpr int kSm90Dim = 128, kHalves = kSm90Dim / 64;  // 64 dims of a row are 128 bytes
// Of 64 positions each, the keys of a chunk, then its values: two blocks leave no room for more.
constexpr int kRingTiles = 6;

constexpr int kConsumers = kTileThreads, kThreads = 2 * kConsumers;
// Of a thread that multiplies, and of another: 128 on average, as two blocks leave them.
constexpr int kConsumerRegisters = 216, kLoaderRegisters = 40;

// 64 rows of heads as wgmma takes them: 64 dims of all rows after the other, eight vectors of 16 bytes a row,
// permuted by the row's place among eight.
__device__ constexpr inline int element_at(int row, int vector) {
  return (vector / 8 * kChunk + row) * 64 + (vector % 8 ^ row % 8) * 8;
}
constexpr uint64_t kHalf = kChunk * 128 >> 4;  // of an operand
static_assert(kBlockRows == kChunk);

template <typename T>
struct alignas(1024) Sm90Shared {
  T q[kBlockRows * kSm90Dim];
  T tiles[kRingTiles][kChunk * kSm90Dim];
  uint64_t full[kRingTiles], empty[kRingTiles], has_queries;

  __device__ uint32_t full_at(int tile) { return shared_address(&full[tile]); }
  __device__ uint32_t empty_at(int tile) { return shared_address(&empty[tile]); }
  __device__ uint32_t queries_at() { return shared_address(&has_queries); }

  // By one thread.
  __device__ void init_barriers() {
    for (int tile = 0; tile < kRingTiles; ++tile) {
      init_barrier(full_at(tile), kTileWarps);
      init_barrier(empty_at(tile), kTileWarps);
    }
    init_barrier(queries_at(), 1);
    show_barriers();
  }
};

template <typename T>
struct Sm90Args {
  PrefillArgs<T> prefill;
  CUtensorMap q;     // [rows][heads][dims]: 64 dims of a tile's heads of a block's rows
  CUtensorMap k, v;  // [slots][dims]: 64 dims of kWarpKeys positions
};

// The warp that asks for queries, keys and values. Four of its lanes have a quarter of each chunk.
template <typename T>
class PrefillLoader {
 public:
  __device__ PrefillLoader(const Sm90Args<T>& args, Sm90Shared<T>& shared, const PrefillBlock<T>& block)
      : args_(args), shared_(shared), block_(block), lane_(static_cast<int>(threadIdx.x % 32)) {}

  // By the first kTileWarps lanes.
  __device__ void load() {
    const int first = block_.first_chunk(), last = block_.last_chunk();
    if (first > last) return;
    if (lane_ == 0) load_queries();
    int page = page_in(first);
    for (int chunk = first; chunk <= last; ++chunk) {
      const int next = page_in(chunk + 1);
      const int slot =
          page < 0 ? kLeave : args_.prefill.pages.slot(page, block_.tile.kv_head, position_in(chunk));
      load_tile(args_.k, slot);
      load_tile(args_.v, slot);
      page = next;
    }
  }

 private:
  __device__ int position_in(int chunk) const { return chunk * kChunk + lane_ * kWarpKeys; }
  // The page of the lane's positions, or kLeave: nobody sees them.
  __device__ int page_in(int chunk) const {
    const int at = position_in(chunk);
    const bool seen = at <= block_.seen.last && block_.seen.first < at + kWarpKeys;
    return seen ? args_.prefill.pages.page_of(block_.piece.sequence, at) : kLeave;
  }
  __device__ void load_queries() const {
    const int rows = args_.prefill.rows_per_block * block_.tile.heads;
    arrive_expecting(shared_.queries_at(), static_cast<uint32_t>(rows * kSm90Dim * sizeof(T)));
#pragma unroll
    for (int half = 0; half < kHalves; ++half)
      copy_box(shared_address(shared_.q + half * kBlockRows * 64), args_.q, half * 64, block_.tile.first_head,
               block_.piece.first, shared_.queries_at());
  }
  __device__ void load_tile(const CUtensorMap& map, int slot) {
    const int tile = ring_.stage;
    const uint32_t full = shared_.full_at(tile);
    wait_for_phase(shared_.empty_at(tile), ring_.parity ^ 1);
    arrive_expecting(full, slot < 0 ? 0 : static_cast<uint32_t>(kWarpKeys * kSm90Dim * sizeof(T)));
#pragma unroll
    for (int half = 0; half < kHalves; ++half)
      if (slot >= 0)
        copy_rectangle(shared_address(shared_.tiles[tile] + (half * kChunk + lane_ * kWarpKeys) * 64), map,
                       half * 64, slot, full);
    ring_.advance(kRingTiles);
  }

  const Sm90Args<T>& args_;
  Sm90Shared<T>& shared_;
  const PrefillBlock<T>& block_;
  const int lane_;
  StageRing ring_;
};

}  // namespace shoal::ops::cuda
