// paged_attention() for any rows by the tensor cores of sm_90a: a warpgroup multiplies 64 rows with the keys
// of a chunk, weighs the scores in registers, and multiplies the weights, from there, with the chunk's
// values. Both give the bits of mma over the same steps (attention_kernels.h). Two blocks share a
// multiprocessor: one multiplies while the other weighs.
//
// Instructions bound these blocks: a prompt of 411 columns has four chunks a block, and what a block does
// once took longer than they do. So a warp of its own asks for all that the four others read, in bulk. Copies
// by all threads kept a block busy for 3,500 cycles before its first chunk (H200,
// docs/perf/notebook-decode.md).
#include "ops/cuda/attention/attention_prefill_sm90.cuh"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/device/machine.h"
#include "ops/cuda/device/tensor_map.h"
#include "ops/cuda/ptx/wgmma.cuh"

namespace shoal::ops::cuda {
namespace {

using Sums = float[kChunk / 2];  // of a thread: 64 columns

// The same as tiles of eight columns.
[[maybe_unused]] __device__ __forceinline__ float (&tiles_of(Sums& sums))[8][4] {
  return reinterpret_cast<float(&)[8][4]>(sums);
}

// Begins the products of 64 rows with the keys of a chunk.
template <typename T>
__device__ __forceinline__ void begin_scores(Sums& scores, uint32_t queries, uint32_t keys) {
  const uint64_t q = operand_of_pairs_at(queries), k = operand_of_pairs_at(keys);
  leave_undefined(scores);
  begin_multiplications();
#pragma unroll
  for (int step = 0; step < kSm90Dim / 16; ++step) {
    const uint64_t at = step / 4 * kHalf + step % 4 * kSecondHalf;
    multiply_wide<T>(scores, q + at, k + at, step > 0);
  }
  end_multiplications();
}

// Begins the products of a chunk's weights with 64 dims of its values.
template <typename T>
__device__ __forceinline__ void begin_values(Sums& sums, const RowWeights& weights, uint64_t values) {
  leave_undefined(sums);
  begin_multiplications();
#pragma unroll
  for (int step = 0; step < kChunk / 16; ++step)
    multiply_rows<T>(sums, weights.left[step], values + step * kSixteenRows, step > 0);
  end_multiplications();
}

// Zeros for the values of a chunk's positions that nobody sees: what lies there may be no number. By the
// warps that multiply.
template <typename T>
__device__ __forceinline__ void clear_unseen(const Seen& seen, int chunk, T* values) {
  const int begin = seen.first - chunk * kChunk, end = seen.last + 1 - chunk * kChunk;
  if (begin <= 0 && end >= kChunk) return;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < kChunk * kSm90Dim / 8; i += kConsumers) {
    const int row = i % kChunk;
    if (row < begin || row >= end) *reinterpret_cast<uint4*>(values + element_at(row, i / kChunk)) = uint4{};
  }
  show_to_tensor_cores();
  asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory");
}

// One of the four warps that multiply.
template <typename T>
class PrefillConsumer {
 public:
  __device__ PrefillConsumer(Sm90Shared<T>& shared, const PrefillBlock<T>& block)
      : shared_(shared), block_(block) {}

  __device__ __forceinline__ void attend() {
    const int first = block_.first_chunk(), last = block_.last_chunk();
    float maximum[2] = {kNothing, kNothing}, sum[2] = {}, total[kSm90Dim / 8][4] = {};
    if (first <= last) wait_for_phase(shared_.queries_at(), 0);
    for (int chunk = first; chunk <= last; ++chunk) {
      Sums scores;
      score(scores);
      RowWeights weights;
      block_.weigh_chunk(chunk, nullptr, tiles_of(scores), weights);

      const int tile = wait_for_tile();
      clear_unseen(block_.seen, chunk, shared_.tiles[tile]);
      Sums values[kHalves];
      const uint64_t operand = operand_of_outputs_at(shared_address(shared_.tiles[tile]));
#pragma unroll
      for (int half = 0; half < kHalves; ++half)
        begin_values<T>(values[half], weights, operand + half * kHalf);
      MergeWeights merge[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        merge[r] = merge_maximum(maximum[r], weights.top[r]);
        sum[r] = merged(sum[r], weights.sums[r], merge[r]);
      }
      wait_for_multiplications<1>();
      merge_half(values[0], merge, 0, total);
      wait_for_multiplications<0>();
      release(tile);
      merge_half(values[1], merge, 1, total);
    }
    store_rows<T, kSm90Dim>(block_, sum, total);
  }

 private:
  static_assert(kHalves == 2);

  // The products with the keys of the next tile.
  __device__ __forceinline__ void score(Sums& scores) {
    const int tile = wait_for_tile();
    begin_scores<T>(scores, shared_address(shared_.q), shared_address(shared_.tiles[tile]));
    wait_for_multiplications<0>();
    pin(scores);
    release(tile);
  }
  static __device__ __forceinline__ void merge_half(Sums& values, const MergeWeights (&merge)[2], int half,
                                                    float (&total)[kSm90Dim / 8][4]) {
    pin(values);
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        total[8 * half + n][j] = merged(total[8 * half + n][j], values[4 * n + j], merge[j / 2]);
  }
  __device__ int wait_for_tile() {
    const int tile = ring_.stage;
    wait_for_phase(shared_.full_at(tile), ring_.parity);
    ring_.advance(kRingTiles);
    return tile;
  }
  __device__ void release(int tile) {
    if (threadIdx.x % 32 == 0) arrive(shared_.empty_at(tile));
  }

  Sm90Shared<T>& shared_;
  const PrefillBlock<T>& block_;
  StageRing ring_;
};

template <typename T>
__global__ __launch_bounds__(kThreads, 2) void prefill_sm90_kernel(const __grid_constant__ Sm90Args<T> args) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<Sm90Shared<T>*>(memory);
  if (threadIdx.x == 0) shared.init_barriers();
  __syncthreads();
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
  // The block is known from the tables, which the predecessor does not write (ops/attention.h).
  if (warp < kTileWarps) {
    take_registers<kConsumerRegisters>();
    const PrefillBlock<T> block(args.prefill, static_cast<int>(blockIdx.x));
    wait_for_inputs();
    if (block.piece.count > 0) PrefillConsumer<T>(shared, block).attend();
  } else {
    give_registers<kLoaderRegisters>();
    if (warp > kTileWarps) return wait_for_inputs();
    const PrefillBlock<T> block(args.prefill, static_cast<int>(blockIdx.x));
    wait_for_inputs();
    if (block.piece.count > 0 && threadIdx.x % 32 < kTileWarps) PrefillLoader<T>(args, shared, block).load();
  }
#endif
}

// A dimension's size, stride or part of a box.
template <typename To>
To side(int64_t value) {
  return static_cast<To>(value);
}

CUtensorMap map_of_pages(TensorView pages) {
  const int64_t dim = pages.dim(3);
  const cuuint64_t sizes[] = {side<cuuint64_t>(dim), side<cuuint64_t>(pages.elements() / dim)};
  const cuuint64_t row_bytes = side<cuuint64_t>(dim * size_of(pages.dtype()));
  const cuuint32_t box[] = {64, kWarpKeys};
  return tensor_map(pages.data(), {.type = CU_TENSOR_MAP_DATA_TYPE_UINT16,
                                   .sizes = sizes,
                                   .strides = {&row_bytes, 1},
                                   .box = box,
                                   .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
}

// q: [rows, heads * kSm90Dim].
CUtensorMap map_of_queries(TensorView q, int heads_per_tile, int rows_per_block) {
  const int64_t bytes = kSm90Dim * size_of(q.dtype()), heads = q.dim(1) / kSm90Dim;
  const cuuint64_t sizes[] = {kSm90Dim, side<cuuint64_t>(heads), side<cuuint64_t>(q.dim(0))};
  const cuuint64_t strides[] = {side<cuuint64_t>(bytes), side<cuuint64_t>(heads * bytes)};
  const cuuint32_t box[] = {64, side<cuuint32_t>(heads_per_tile), side<cuuint32_t>(rows_per_block)};
  return tensor_map(q.data(), {.type = CU_TENSOR_MAP_DATA_TYPE_UINT16,
                               .sizes = sizes,
                               .strides = strides,
                               .box = box,
                               .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
}

}  // namespace

bool suits_prefill_sm90(Context& ctx, const AttentionCall& call, const HeadTiling& tiling) {
  return has_wgmma(ctx) && call.layout.head_dim == kSm90Dim && call.plan->page_size % kWarpKeys == 0 &&
         tiling.group % tiling.heads_per_tile == 0;
}

template <typename P>
void launch_prefill_sm90(Context& ctx, const AttentionCall& call, TensorView rounded_q,
                         const PrefillArgs<P>& args) {
  const Sm90Args<P> all{args, map_of_queries(rounded_q, args.tiling.heads_per_tile, args.rows_per_block),
                        map_of_pages(call.cache.k), map_of_pages(call.cache.v)};
  const Grid grid{dim3(static_cast<unsigned>(args.pieces * args.tiles)), dim3(kThreads),
                  sizeof(Sm90Shared<P>)};
  launch(ctx, "prefill_attention", grid, prefill_sm90_kernel<P>, all);
}
template void launch_prefill_sm90(Context&, const AttentionCall&, TensorView,
                                  const PrefillArgs<__nv_bfloat16>&);
template void launch_prefill_sm90(Context&, const AttentionCall&, TensorView, const PrefillArgs<__half>&);

}  // namespace shoal::ops::cuda
