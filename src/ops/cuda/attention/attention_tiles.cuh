// Chunks of 64 positions in shared memory, and their products by the tensor cores.
#pragma once

#include "ops/attention_scratch.h"
#include "ops/cuda/attention/attention_merge.cuh"
#include "ops/cuda/attention/attention_rows.cuh"
#include "ops/cuda/ptx/async_copy.cuh"
#include "ops/cuda/ptx/mma.cuh"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {

constexpr int kChunk = kGpuAttentionChunk;
constexpr int kTileRows = 16;  // of an mma
constexpr int kTileWarps = 4, kTileThreads = 32 * kTileWarps;
constexpr int kWarpKeys = kChunk / kTileWarps;  // positions of a chunk that a warp copies

// Rows of kDim 16-bit values; their 16-byte vectors are permuted so that eight rows of the same vector lie in
// eight different sixteenths of the banks (ldmatrix, without conflicts).
template <int kDim>
struct Swizzle {
  static constexpr int kVectors = kDim / 8;
  static_assert(kVectors == 4 || kVectors == 8 || kVectors == 16);

  // In elements.
  __host__ __device__ static constexpr int at(int row, int vector) {
    const int key = kVectors == 4 ? row / 2 % 4 : row % 8;
    return row * kDim + (vector ^ key) * 8;
  }
};

__device__ inline uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// The query heads that a block has: of one key/value head, at most kTileRows.
struct HeadTile {
  int kv_head, first_head, heads;
  bool first;  // of its key/value head
};
struct HeadTiling {
  int heads_per_tile;
  int tiles;  // of a key/value head

  explicit HeadTiling(const HeadLayout& layout)
      : heads_per_tile(static_cast<int>(std::min<int64_t>(layout.heads / layout.kv_heads, kTileRows))),
        tiles(static_cast<int>(layout.heads / layout.kv_heads + heads_per_tile - 1) / heads_per_tile) {}

  __device__ HeadTile tile(const Rows& rows, int index) const {
    const int kv_head = index / tiles, begin = index % tiles * heads_per_tile;
    return {kv_head, kv_head * rows.group() + begin, min(heads_per_tile, rows.group() - begin), begin == 0};
  }
};

// ---- asynchronous copies

// 16 bytes, or 16 zeros (then nothing is read).
__device__ inline void copy_or_clear(void* to_shared, const void* from, bool copy) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to_shared)),
               "l"(__cvta_generic_to_global(from)), "r"(copy ? 16 : 0)
               : "memory");
}

// Instead of a slot.
constexpr int kClear = -1;  // fill with zeros: nobody sees this position
constexpr int kLeave = -2;  // somebody else fills it

// One warp's positions of a chunk: rows warp * 16 .. + 15 of the tile. `slot`: of position number lane % 16.
template <typename T, int kDim>
__device__ void copy_keys(T* tile, const T* side, int slot) {
  constexpr int kVectors = kDim / 8, kAtOnce = 32 / kVectors;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int vector = lane % kVectors;
#pragma unroll
  for (int first = 0; first < kWarpKeys; first += kAtOnce) {
    const int key = first + lane / kVectors;
    const int from = __shfl_sync(~0u, slot, key);
    T* const to = tile + Swizzle<kDim>::at(warp * kWarpKeys + key, vector);
    if (from != kLeave)
      copy_or_clear(to, side + (from < 0 ? 0 : static_cast<int64_t>(from) * kDim + vector * 8), from >= 0);
  }
}

// ---- fragments

__device__ inline void load_matrices(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
__device__ inline void load_matrices_transposed(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

// Columns 16 step .. + 15 of sixteen rows, as the left operand.
template <int kDim, typename T>
__device__ void load_left(uint32_t (&a)[4], const T* tile, int first_row, int step) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  load_matrices(a, tile + Swizzle<kDim>::at(first_row + lane % 16, 2 * step + lane / 16));
}
// Dims 16 step .. + 15 of keys first_key .. + 15: the right operands of the scores of eight (b[0], b[1]) and
// eight more (b[2], b[3]) keys.
template <int kDim, typename T>
__device__ void load_keys(uint32_t (&b)[4], const T* keys, int first_key, int step) {
  const int lane = static_cast<int>(threadIdx.x % 32), matrix = lane / 8;
  load_matrices(b, keys + Swizzle<kDim>::at(first_key + matrix / 2 * 8 + lane % 8, 2 * step + matrix % 2));
}
// Positions 16 step .. + 15 of dims first_dim .. + 15: the right operands of eight (b[0], b[1]) and eight
// more (b[2], b[3]) dims.
template <int kDim, typename T>
__device__ void load_values(uint32_t (&b)[4], const T* values, int first_dim, int step) {
  const int lane = static_cast<int>(threadIdx.x % 32), matrix = lane / 8;
  load_matrices_transposed(
      b, values + Swizzle<kDim>::at(step * 16 + matrix % 2 * 8 + lane % 8, first_dim / 8 + matrix / 2));
}

template <typename T>
__device__ void multiply(float (&sums)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  multiply_16<T>(sums, a[0], a[1], a[2], a[3], b0, b1);
}

template <typename T>
__device__ uint32_t packed(float low, float high) {
  const Pair<T> two{narrowed_value<T>(low), narrowed_value<T>(high)};
  return *reinterpret_cast<const uint32_t*>(&two);
}
// A right operand whose columns all sum the left one's rows.
template <typename T>
__device__ uint32_t packed_ones() {
  return std::is_same_v<T, __half> ? 0x3c003c00u : 0x3f803f80u;
}

// f(T{}, dim as a constant) for the caches that have_tensor_form.
template <typename F>
void with_tensor_form(const AttentionCall& call, F&& f) {
  const auto with_dim = [&](auto type) {
    switch (call.layout.head_dim) {
      case 32:
        return f(type, std::integral_constant<int, 32>{});
      case 64:
        return f(type, std::integral_constant<int, 64>{});
      default:
        return f(type, std::integral_constant<int, 128>{});
    }
  };
  with_operand_type(call.cache.k.dtype(), with_dim);
}

}  // namespace shoal::ops::cuda
