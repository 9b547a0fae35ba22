// paged_attention() for any rows by the tensor cores of sm_90a: a warpgroup multiplies 64 rows with the keys
// of a chunk, weighs the scores in registers, and multiplies the weights, from there, with the chunk's
// values. Both give the bits of mma over the same steps (attention_kernels.h). Two blocks share a
// multiprocessor: one multiplies while the other weighs.
#include "ops/cuda/attention/attention_prefill.cuh"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/ptx/mbarrier.cuh"
#include "ops/cuda/ptx/wgmma.cuh"

namespace shoal::ops::cuda {
namespace {

// Rows of kDim values of 16 bits as wgmma takes them: 64 dims of all rows after the other, eight vectors of
// 16 bytes a row, permuted by the row's place among eight.
template <int kDim>
struct HalvesOf64 {
  static constexpr int kVectors = kDim / 8, kRow = 64, kHalves = kDim / 64;

  __device__ static constexpr int at(int row, int vector) {
    return (vector / 8 * kChunk + row) * kRow + (vector % 8 ^ key(row)) * 8;
  }
  __device__ static constexpr int key(int row) { return row % 8; }
};
constexpr uint64_t kHalf = kChunk * 128 >> 4;  // of an operand
static_assert(kBlockRows == kChunk);

template <typename T, int kDim>
struct alignas(1024) Sm90Shared {
  T q[kBlockRows * kDim];
  T k[2][kChunk * kDim], v[2][kChunk * kDim];
};

using Sums = float[kChunk / 2];  // of a thread: 64 columns

// The same as tiles of eight columns.
__device__ __forceinline__ float (&tiles_of(Sums& sums))[8][4] {
  return reinterpret_cast<float(&)[8][4]>(sums);
}

// The products of 64 rows with the keys of a chunk.
template <typename T, int kDim>
__device__ __forceinline__ void score_chunk(Sums& scores, uint32_t queries, uint32_t keys) {
  const uint64_t q = operand_of_pairs_at(queries), k = operand_of_pairs_at(keys);
  pin(scores);
  begin_multiplications();
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
    const uint64_t at = step / 4 * kHalf + step % 4 * kSecondHalf;
    multiply_wide<T>(scores, q + at, k + at, step > 0);
  }
  end_multiplications();
  wait_for_multiplications<0>();
  pin(scores);
}

// Begins the products of a chunk's weights with 64 dims of its values.
template <typename T>
__device__ __forceinline__ void begin_values(Sums& sums, const RowWeights& weights, uint64_t values) {
  pin(sums);
  begin_multiplications();
#pragma unroll
  for (int step = 0; step < kChunk / 16; ++step)
    multiply_rows<T>(sums, weights.left[step], values + step * kSixteenRows, step > 0);
  end_multiplications();
}

template <typename T, int kDim>
__global__ __launch_bounds__(kTileThreads,
                             2) void prefill_sm90_kernel(const __grid_constant__ PrefillArgs<T> args) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Layout = HalvesOf64<kDim>;
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<Sm90Shared<T, kDim>*>(memory);
  wait_for_inputs();
  const PrefillBlock<T> block(args);
  if (block.piece.count <= 0) return;

  const auto copy_chunk = [&](int chunk, int page, int stage) {
    const PageVectors<T, kDim, Layout> vectors(block.slot_in(page, chunk));
    vectors.copy(shared.k[stage], args.pages.k);
    vectors.copy(shared.v[stage], args.pages.v);
    end_copy_group();
  };
  const int last = block.last_chunk();
  int chunk = block.first_chunk(), stage = 0, page = -1;
  if (chunk <= last) {
    copy_queries<Layout>(block, shared.q);
    copy_chunk(chunk, block.page_in(chunk), stage);
    page = block.page_in(chunk + 1);
  }

  float maximum[2] = {kNothing, kNothing}, sum[2] = {}, total[kDim / 8][4] = {};
  for (; chunk <= last; ++chunk, stage = 1 - stage) {
    wait_for_copy_groups<0>();
    show_to_tensor_cores();
    __syncthreads();  // all copies are visible, and the other stage is no longer read
    if (chunk < last) {
      copy_chunk(chunk + 1, page, 1 - stage);
      page = block.page_in(chunk + 2);
    }
    Sums scores = {};
    score_chunk<T, kDim>(scores, shared_address(shared.q), shared_address(shared.k[stage]));
    RowWeights weights;
    block.weigh_chunk(chunk, nullptr, tiles_of(scores), weights);
    Sums values[Layout::kHalves] = {};
    const uint64_t operand = operand_of_outputs_at(shared_address(shared.v[stage]));
#pragma unroll
    for (int half = 0; half < Layout::kHalves; ++half)
      begin_values<T>(values[half], weights, operand + half * kHalf);
    MergeWeights merge[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      merge[r] = merge_maximum(maximum[r], weights.top[r]);
      sum[r] = merged(sum[r], weights.sums[r], merge[r]);
    }
#pragma unroll
    for (int half = 0; half < Layout::kHalves; ++half) {
      if (half + 1 < Layout::kHalves)
        wait_for_multiplications<1>();
      else
        wait_for_multiplications<0>();
      pin(values[half]);
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          total[8 * half + n][j] = merged(total[8 * half + n][j], values[half][4 * n + j], merge[j / 2]);
    }
  }
  store_rows<T, kDim>(block, sum, total);
#endif
}

}  // namespace

template <typename P, int kDim>
void launch_prefill_sm90(Context& ctx, Grid grid, const PrefillArgs<P>& args) {
  grid.shared_bytes = sizeof(Sm90Shared<P, kDim>);
  launch(ctx, "prefill_attention", grid, prefill_sm90_kernel<P, kDim>, args);
}
template void launch_prefill_sm90<__nv_bfloat16, 64>(Context&, Grid, const PrefillArgs<__nv_bfloat16>&);
template void launch_prefill_sm90<__nv_bfloat16, 128>(Context&, Grid, const PrefillArgs<__nv_bfloat16>&);
template void launch_prefill_sm90<__half, 64>(Context&, Grid, const PrefillArgs<__half>&);
template void launch_prefill_sm90<__half, 128>(Context&, Grid, const PrefillArgs<__half>&);

}  // namespace shoal::ops::cuda
