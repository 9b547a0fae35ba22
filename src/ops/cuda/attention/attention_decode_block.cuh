// A block of the decode kernel: its arguments, its shared memory, and the ring of tiles through which keys
// and values come to it.
#pragma once

#include "ops/cuda/attention/attention_decode.cuh"

namespace shoal::ops::cuda {

// Of keys and values: those of a shared prefix are read by blocks that run at the same time.
constexpr bool kReadOnce = true;

// They have the row's own key and value; the others share the query heads.
constexpr int kKeyWarp = kTileWarps - 1, kValueWarp = kTileWarps - 2;

template <typename P>
struct DecodeArgs {
  Rows rows;
  Pages<P> pages;
  HeadTurn turn;
  Out out;
  float scale;
  HeadTiling tiling;
  bool single_rows;  // for all sequences; otherwise the offsets tell
  int splits;        // a power of two
  bool clustered;    // blocks merge in their cluster; else the merge kernel does
  int kept;          // chunks of a block whose results stay in its shared memory
  float* partials;   // of the other chunks, by sequence, tile and chunk; null: there are none
  int most_parked;   // of a row: the room for them in partials

  // Of the sequence's row; -1: it has not just one.
  __device__ int row_of(int sequence) const {
    if (single_rows) return sequence;
    const int row = rows.offsets[sequence];
    return rows.offsets[sequence + 1] - row == 1 ? row : -1;
  }
  __device__ Partials parked() const {
    return Partials(partials, static_cast<int64_t>(rows.sequence_count) * gridDim.y * most_parked,
                    tiling.heads_per_tile, rows.dim);
  }
  // The position there of chunk 0 of the block's row; kept chunks come before the others.
  __device__ int64_t first_parked(int sequence) const {
    return (static_cast<int64_t>(sequence) * gridDim.y + blockIdx.y) * most_parked - kept * splits;
  }
};

// Reads results of a sequence's chunks in device memory for the merge: bypassing the first-level cache, which
// does not see the writes of other blocks.
template <typename P>
struct ParkedChunks {
  Partials all;
  int64_t first;  // chunk of theirs
  int heads, dim;

  __device__ ParkedChunks(const DecodeArgs<P>& args, int sequence)
      : all(args.parked()),
        first(args.first_parked(sequence)),
        heads(args.tiling.heads_per_tile),
        dim(args.rows.dim) {}
  __device__ float2 sum(int chunk, int head) const { return pair(all.sums + 2 * at(chunk, head)); }
  __device__ float2 value(int chunk, int head, int first_dim) const {
    return pair(all.values + at(chunk, head) * dim + first_dim);
  }

 private:
  __device__ int64_t at(int chunk, int head) const { return (first + chunk) * heads + head; }
  static __device__ float2 pair(const float* two) { return __ldcg(reinterpret_cast<const float2*>(two)); }
};

// A chunk's keys, its values, the next chunk's keys and so on pass through a ring of tiles. kDeep: four
// tiles, so that a chunk is fetched when the previous one begins; else three, each fetched as soon as its
// buffer is no longer read. Four are better for few blocks; for many, a Hopper multiprocessor holds four
// blocks with three tiles but only three with four (head_dim 128; 64 sequences of 300 positions 29.5 -> 22.9
// us on an H200).
constexpr int ring_tiles(bool deep) { return deep ? 4 : 3; }

// What pages of 8 bits need beside their tiles.
template <bool kScaled>
struct ScaleTile {};
template <>
struct alignas(kTileAlignment) ScaleTile<true> {
  PositionTerms terms[kChunk];
  ByWarp weight_sums;
  __half own_key, own_value;  // scales of the row's own
};

template <typename P, int kDim, bool kDeep>
struct DecodeShared : ScaleTile<PageFormat<P>::kScaled> {
  alignas(kTileAlignment) P ring[ring_tiles(kDeep)][kChunk * kDim];
  Operand<P> q[kDecodeHeads * kDim];
  Operand<P> weights[kDecodeHeads * kChunk];
  ByWarp maxima;
};

// page_bytes: of a value in the pages.
constexpr int64_t shared_bytes_alone(int64_t dim, bool deep, int64_t page_bytes) {
  const int64_t scales = page_bytes == 1 ? static_cast<int64_t>(sizeof(ScaleTile<true>)) : 0;
  const auto maxima = static_cast<int64_t>(sizeof(ByWarp));
  const int64_t all =
      scales + page_bytes * ring_tiles(deep) * kChunk * dim + 2 * kDecodeHeads * (dim + kChunk) + maxima;
  return (all + kTileAlignment - 1) / kTileAlignment * kTileAlignment;
}

// Blocks on a multiprocessor, as many as registers for all of them suffice: 3 (head_dim 128) or 5 with four
// tiles, one more with three, one more of 8 bits. many: of 8 bits, which wait for little but instructions, if
// there are more blocks than fit otherwise (256 sequences of 300 positions 55.8 -> 51.5 us on an H200; one
// takes 4.5 instead of 4.4, for it has fewer registers).
template <typename P>
constexpr bool can_be_many() {
  return sizeof(P) == 1;
}
template <typename P>
constexpr int blocks_together(int dim, bool deep, bool many) {
  return (dim > 64 ? 3 : 5) + (deep ? 0 : 1) + (can_be_many<P>() ? 1 : 0) + (many ? 2 : 0);
}

// Which row of a batch, and which of its heads, a block has.
struct DecodeRow {
  HeadTile tile;
  int sequence, row;
  int position;  // -1: padding, or the sequence has not just one row
};

// A head of kDim over a warp.
template <int kDim>
using WarpHead = HeadPairs<(kDim / 2 + 31) / 32>;

// Of every chunk: the position that this lane looks up.
__device__ inline int lane_key() {
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  return warp * kWarpKeys + lane % kWarpKeys;
}

// Scales of the key and the value at a position, as bits of f16. In words: to merge halves of one would wait
// for them.
struct PositionScales {
  uint32_t key = 0, value = 0;
};
__device__ inline uint32_t half_bits(const __half& value) {
  return *reinterpret_cast<const uint16_t*>(&value);
}
__device__ inline __half half_of(uint32_t bits) { return __ushort_as_half(static_cast<uint16_t>(bits)); }

// The chunks of a block: of its row every chunk number `splits`. In round r of the block `chunk` is copied
// completely; pages are looked up a chunk ahead of the copies.
template <typename P, int kDim, bool kDeep>
struct ChunkRing {
  static constexpr int kTiles = ring_tiles(kDeep);

  const DecodeArgs<P>& args;
  const DecodeRow& row;
  const ChunkRange& range;
  P (&tiles)[kTiles][kChunk * kDim];
  int chunk, last;
  int page;                            // of the chunk after the one that is copied
  int slot;                            // of the chunk that is copied
  PositionScales scales, next_scales;  // of lane_key in this chunk and in the next; unused without scales

  // first_page: a look-up of the page of chunk number `split`.
  __device__ __forceinline__ ChunkRing(const DecodeArgs<P>& of, const DecodeRow& at, const ChunkRange& seen,
                                       P (&ring)[kTiles][kChunk * kDim], int split, int first_page)
      : args(of), row(at), range(seen), tiles(ring), chunk(seen.first + split), last(seen.last()) {
    page = range.first > 0 ? page_in(chunk) : first_page;
    slot = slot_in(chunk, page);
    scales = scales_in(slot);
  }

  // Starts the copies of the first chunk and of the next chunk's keys.
  __device__ __forceinline__ void begin() {
    copy_both(true, 0);
    page = page_in(chunk + args.splits);
    advance(0);
    copy_next(0);
  }

  __device__ __forceinline__ P* keys_of(int round) const { return tiles[2 * round % kTiles]; }
  __device__ __forceinline__ P* values_of(int round) const { return tiles[(2 * round + 1) % kTiles]; }

  // Looks up where the next chunk is.
  __device__ __forceinline__ void advance(int round) {
    if (round > 0) scales = next_scales;
    if (!has_next()) return;
    slot = slot_in(chunk + args.splits, page);
    page = page_in(chunk + 2 * args.splits);
    next_scales = scales_in(slot);
  }
  // Starts the copies of the next chunk's keys; kDeep: of its values too.
  __device__ __forceinline__ void copy_next(int round) const {
    if constexpr (kDeep) return copy_both(has_next(), round + 1);
    if (has_next()) PageVectors<P, kDim>(slot).template copy<kReadOnce>(keys_of(round + 1), args.pages.k);
    end_copy_group();
  }
  __device__ __forceinline__ void copy_values_behind(int round) const {
    if (has_next()) PageVectors<P, kDim>(slot).template copy<kReadOnce>(values_of(round + 1), args.pages.v);
    end_copy_group();
  }

  // This thread's keys have arrived; all other copies began later.
  __device__ __forceinline__ void wait_for_keys(int round) const {
    if (round == 0)
      wait_for_copy_groups<kDeep ? 3 : 2>();
    else
      wait_for_copy_groups<1>();
  }

 private:
  __device__ __forceinline__ int page_in(int of_chunk) const {
    const int at = of_chunk * kChunk + lane_key();
    return range.sees(at) ? args.pages.page_of(row.sequence, at) : 0;
  }
  __device__ __forceinline__ int slot_in(int of_chunk, int page_id) const {
    const int at = of_chunk * kChunk + lane_key();
    if (at == row.position) return kLeave;
    return range.sees(at) ? args.pages.slot(page_id, row.tile.kv_head, at) : kClear;
  }
  __device__ __forceinline__ PositionScales scales_in([[maybe_unused]] int of_slot) const {
    PositionScales found;
    if constexpr (PageFormat<P>::kScaled)
      if (of_slot >= 0)
        found = {half_bits(args.pages.k_scales[of_slot]), half_bits(args.pages.v_scales[of_slot])};
    return found;
  }
  __device__ __forceinline__ bool has_next() const { return chunk + args.splits <= last; }
  // The keys and the values of `slot`, each a group of copies.
  __device__ __forceinline__ void copy_both(bool wanted, int round) const {
    const PageVectors<P, kDim> vectors(slot);
    if (wanted) vectors.template copy<kReadOnce>(keys_of(round), args.pages.k);
    end_copy_group();
    if (wanted) vectors.template copy<kReadOnce>(values_of(round), args.pages.v);
    end_copy_group();
  }
};

}  // namespace shoal::ops::cuda
