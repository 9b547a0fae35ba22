// Results of chunks that blocks have apart, and their merge in order.
#pragma once

#include "ops/cuda/attention/attention_tiles.cuh"
#include "ops/cuda/ptx/mbarrier.cuh"

namespace shoal::ops::cuda {

// The chunks that a row sees.
struct ChunkRange {
  int position, first_position;  // inclusive
  int first, count;

  __device__ ChunkRange(const Rows& rows, int at)
      : position(at),
        first_position(rows.first_seen(at)),
        first(first_position / kChunk),
        count(at / kChunk - first + 1) {}
  __device__ int last() const { return first + count - 1; }
  __device__ bool sees(int at) const { return first_position <= at && at <= position; }
  // Of a chunk's positions: the first and the last that is seen, counted in the chunk.
  __device__ int2 within(int chunk) const {
    return {first_position - chunk * kChunk, position - chunk * kChunk};
  }
};

// [chunks, heads, dim] values and, after them all, {maximum, sum} per chunk and head.
struct Partials {
  float* values;
  float* sums;

  __host__ __device__ static int64_t floats(int64_t chunks, int64_t heads, int64_t dim) {
    return chunks * heads * (dim + 2);
  }
  __device__ Partials(float* memory, int64_t chunks, int heads, int dim)
      : values(memory), sums(memory + chunks * heads * dim) {}
};

// Merges the chunks of a row, of the pairs of dims that fall to this thread: begin, begin + step, ...
// sum_of(chunk, head) -> {maximum, sum}; value_of(chunk, head, dim) -> its pair.
template <int kDim, typename Sum, typename Value>
__device__ void merge_chunks(const Out& out, int64_t row, const HeadTile& tile, int chunks, int begin,
                             int step, Sum sum_of, Value value_of) {
  for (int pair = begin; pair < tile.heads * kDim / 2; pair += step) {
    const int head = pair / (kDim / 2), dim = pair % (kDim / 2) * 2;
    float maximum = kNothing, sum = 0;
    float2 value = {0, 0};
#pragma unroll 4
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const float2 part = sum_of(chunk, head), part_value = value_of(chunk, head, dim);
      const MergeWeights weights = merge_maximum(maximum, part.x);
      sum = merged(sum, part.y, weights);
      value = {merged(value.x, part_value.x, weights), merged(value.y, part_value.y, weights)};
    }
    const float factor = share(sum);
    out.store(row, (tile.first_head + head) * kDim + dim, value.x * factor, value.y * factor);
  }
}

// For all threads of the cluster: their earlier writes are visible afterwards.
__device__ inline void cluster_barrier() {
  __syncwarp();
#if __CUDA_ARCH__ >= 900
  synchronize_cluster();
#endif
}

// At the end: others have read what this block keeps, and this block has used what it read of others.
__device__ inline void end_cluster() {
  __syncwarp();
#if __CUDA_ARCH__ >= 900
  leave_cluster();
#endif
}

// The same address in the shared memory of another block of the cluster.
__device__ inline float2 load_remote([[maybe_unused]] const float* here, [[maybe_unused]] int block) {
  float2 value = {0, 0};
#if __CUDA_ARCH__ >= 900
  const uint32_t there = address_in(shared_address(here), static_cast<uint32_t>(block));
  asm volatile("ld.shared::cluster.v2.f32 {%0,%1}, [%2];" : "=f"(value.x), "=f"(value.y) : "r"(there));
#endif
  return value;
}

}  // namespace shoal::ops::cuda
