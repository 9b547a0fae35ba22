// Chunks of 64 positions in shared memory, and their products by the tensor cores.
#pragma once

#include "ops/cuda/attention/attention_merge.cuh"
#include "ops/cuda/attention/attention_rows.cuh"
#include "ops/cuda/ptx/async_copy.cuh"
#include "ops/cuda/ptx/mma.cuh"
#include "ops/cuda/ptx/shared_address.cuh"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {

constexpr int kChunk = 64;
constexpr int kTileRows = 16;  // of an mma
constexpr int kTileWarps = 4, kTileThreads = 32 * kTileWarps;
constexpr int kWarpKeys = kChunk / kTileWarps;  // positions of a chunk that a warp copies

constexpr int kTileAlignment = 256;  // the longest row

// Rows of kDim values, of 16 bits unless T says otherwise; their 16-byte vectors are permuted so that eight
// rows of the same vector lie in eight different sixteenths of the banks (ldmatrix, without conflicts).
template <int kDim, typename T = uint16_t>
struct Swizzle {
  static constexpr int kPerVector = 16 / sizeof(T);
  static constexpr int kVectors = kDim / kPerVector;
  static_assert(kVectors == 2 || kVectors == 4 || kVectors == 8 || kVectors == 16);

  // In elements. Of vectors v and v ^ x in a row, the addresses differ by ^ 16 x bytes (tiles are aligned to
  // kTileAlignment): a lane computes one address and reaches the others by one instruction each.
  __host__ __device__ static constexpr int at(int row, int vector) {
    return row * kDim + (vector ^ key(row)) * kPerVector;
  }
  // By which a row's vectors are permuted. key(a + b) = key(a) ^ key(b) where a is less than a power of two
  // of which b is a multiple.
  __host__ __device__ static constexpr int key(int row) {
    return kVectors == 2 ? row / 4 % 2 : kVectors == 4 ? row / 2 % 4 : row % 8;
  }
};

// Of another vector of the row: the address of vector v gives that of v ^ other.
__device__ inline SharedAddress at_vector(SharedAddress row, int other) { return row ^ 16 * other; }

// The query heads that a block has: of one key/value head.
struct HeadTile {
  int kv_head, first_head, heads;
  bool first;  // of its key/value head
};
struct HeadTiling {
  int group;  // query heads of a key/value head
  int heads_per_tile;
  int tiles;  // of a key/value head

  // most: heads of a tile.
  HeadTiling(const HeadLayout& layout, int most)
      : group(static_cast<int>(layout.heads / layout.kv_heads)),
        heads_per_tile(std::min(group, most)),
        tiles((group + heads_per_tile - 1) / heads_per_tile) {}

  __device__ HeadTile tile(int index) const {
    if (tiles == 1) return {index, index * group, group, true};
    const int kv_head = index / tiles, begin = (index - kv_head * tiles) * heads_per_tile;
    return {kv_head, kv_head * group + begin, min(heads_per_tile, group - begin), begin == 0};
  }
};

// ---- asynchronous copies

// 16 bytes: `bytes` of them, 16 or 0, are read, and zeros follow. kOnce: nobody else reads them (drop_first).
template <bool kOnce = false>
__device__ inline void copy_vector(SharedAddress to, const void* from, int bytes) {
  if constexpr (kOnce)
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "l"(drop_first())
                 : "memory");
  else
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes)
                 : "memory");
}
__device__ inline void copy_or_clear(void* to_shared, const void* from, bool copy) {
  copy_vector(shared_address(to_shared), from, copy ? 16 : 0);
}

// Instead of a slot.
constexpr int kClear = -1;  // fill with zeros: nobody sees this position
constexpr int kLeave = -2;  // somebody else fills it

// Where the vectors of one warp's positions of a chunk are in the pages, of those that this lane copies: rows
// warp * 16 .. + 15 of the tile. The same for keys and values.
template <typename P, int kDim>
struct PageVectors {
  using Layout = Swizzle<kDim, P>;
  static constexpr int kVectors = Layout::kVectors, kAtOnce = 32 / kVectors, kCount = kWarpKeys / kAtOnce;
  int from[kCount];  // counted in vectors of 16 bytes; or kClear, kLeave

  // slot: of position number lane % 16.
  __device__ __forceinline__ explicit PageVectors(int slot) {
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int row = __shfl_sync(~0u, slot, i * kAtOnce + lane / kVectors);
      from[i] = row < 0 ? row : row * kVectors + lane % kVectors;
    }
  }
  // kOnce: as in copy_vector, for 16-bit pages.
  template <bool kOnce = false>
  __device__ __forceinline__ void copy(P* tile, const P* side) const {
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const SharedAddress first =
        shared_address(tile + Layout::at(warp * kWarpKeys + lane / kVectors, lane % kVectors));
    const auto* const vectors = reinterpret_cast<const uint4*>(side);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int row = i * kAtOnce;
      const SharedAddress to = at_vector(first, Layout::key(row)) +
                               static_cast<unsigned>(row * kDim * static_cast<int>(sizeof(P)));
      if constexpr (sizeof(P) == 1) {  // every byte is a number: nothing to clear
        // (Without the policy: with it, an H200 meets an illegal instruction; nvcc 13.0.)
        if (from[i] >= 0) copy_vector(to, vectors + static_cast<unsigned>(from[i]), 16);
      } else if (from[i] != kLeave) {
        copy_vector<kOnce>(to, vectors + static_cast<unsigned>(max(from[i], 0)), from[i] >= 0 ? 16 : 0);
      }
    }
  }
};

// ---- fragments

__device__ inline void load_matrices(uint32_t (&r)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}
__device__ inline void load_matrices_transposed(uint32_t (&r)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}

// The first two of these matrices, of addresses that lanes 0 to 15 name.
__device__ inline void load_two_matrices(uint32_t (&r)[2], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(row)
               : "memory");
}
__device__ inline void load_two_matrices_transposed(uint32_t (&r)[2], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(row)
               : "memory");
}

// Columns 16 step .. + 15 of sixteen rows, as the left operand.
template <int kDim, typename T>
__device__ void load_left(uint32_t (&a)[4], const T* tile, int first_row, int step) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  load_matrices(
      a, at_vector(shared_address(tile + Swizzle<kDim>::at(first_row + lane % 16, lane / 16)), 2 * step));
}
// The same of the first eight rows, as the right operand: the rows are its columns.
template <int kDim, typename T>
__device__ void load_right(uint32_t (&a)[2], const T* tile, int step) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  load_two_matrices(a, at_vector(shared_address(tile + Swizzle<kDim>::at(lane % 8, lane / 8 % 2)), 2 * step));
}
// Dims 16 step .. + 15 of keys first_key .. + 15: the right operands of the scores of eight (b[0], b[1]) and
// eight more (b[2], b[3]) keys.
template <int kDim, typename T>
__device__ void load_keys(uint32_t (&b)[4], const T* keys, int first_key, int step) {
  const int lane = static_cast<int>(threadIdx.x % 32), matrix = lane / 8;
  const T* const row = keys + Swizzle<kDim>::at(first_key + matrix / 2 * 8 + lane % 8, matrix % 2);
  load_matrices(b, at_vector(shared_address(row), 2 * step));
}
// Positions 16 step .. + 15 of dims first_dim .. + 15: the right operands of eight (b[0], b[1]) and eight
// more (b[2], b[3]) dims.
template <int kDim, typename T>
__device__ void load_values(uint32_t (&b)[4], const T* values, int first_dim, int step) {
  const int lane = static_cast<int>(threadIdx.x % 32), matrix = lane / 8;
  const T* const row = values + Swizzle<kDim>::at(matrix % 2 * 8 + lane % 8, matrix / 2);
  load_matrices_transposed(b, at_vector(shared_address(row), first_dim / 8) + step * 16 * kDim * 2);
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

// Of right operands with pairs of columns in a lane: the sums of its two columns over all of them.
template <typename T, int kSteps>
__device__ void sum_columns(float (&sums)[2], const uint32_t (&b)[kSteps][2]) {
  const uint32_t ones[4] = {packed_ones<T>(), packed_ones<T>(), packed_ones<T>(), packed_ones<T>()};
  float products[4] = {};
#pragma unroll
  for (int step = 0; step < kSteps; ++step) multiply<T>(products, ones, b[step][0], b[step][1]);
  sums[0] = products[0], sums[1] = products[1];
}

// f(P{}, dim as a constant) for the pages that have_tensor_form.
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
  if (call.cache.k.dtype() == DType::i8) return with_dim(uint8_t());
  with_operand_type(call.cache.k.dtype(), with_dim);
}

}  // namespace shoal::ops::cuda
