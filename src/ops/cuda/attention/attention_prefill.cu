// paged_attention() for any rows on every GPU, by mma.
#include "ops/cuda/attention/attention_prefill.cuh"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/device/machine.h"

namespace shoal::ops::cuda {
namespace {

// Terms of the positions of two chunks.
template <bool kScaled>
struct StageTerms {};
template <>
struct alignas(16) StageTerms<true> {
  PositionTerms terms[2][kChunk];
};

template <typename P, int kDim>
struct PrefillShared : StageTerms<PageFormat<P>::kScaled> {
  alignas(kTileAlignment) Operand<P> q[kBlockRows * kDim];
  P k[2][kChunk * kDim], v[2][kChunk * kDim];
};

// The terms of a slot, as those of position `key` of the chunk in a stage.
template <typename P, int kDim>
__device__ __forceinline__ void copy_terms(const PrefillArgs<P>& args, int slot, int key, int stage,
                                           PrefillShared<P, kDim>& shared) {
  if constexpr (PageFormat<P>::kScaled) {
    if (threadIdx.x % 32 >= kWarpKeys) return;
    const __half none{};
    shared.terms[stage][key] = terms_of(slot < 0 ? none : args.pages.k_scales[slot],
                                        slot < 0 ? none : args.pages.v_scales[slot], args.scale);
  }
}

template <bool kScaled>
__device__ __forceinline__ const PositionTerms* terms_in(const StageTerms<kScaled>& shared, int stage) {
  if constexpr (kScaled) return shared.terms[stage];
  return nullptr;
}

// Sums of values by tiles of eight columns, as load_page_values gave them, to tiles whose columns 2 (lane %
// 4) and the next are the dims lane_dim and the next.
template <typename P, int kTiles>
__device__ void arrange(float (&sums)[kTiles][4]) {
  if constexpr (PageFormat<P>::kScaled) {
#pragma unroll
    for (int n = 0; n < kTiles; n += 2)
#pragma unroll
      for (int r = 0; r < 4; r += 2) {
        const float even = sums[n][r + 1];
        sums[n][r + 1] = sums[n + 1][r];
        sums[n + 1][r] = even;
      }
  }
}
// Of left operands of sixteen rows: what is added to products of bytes with rows g and g + 8.
template <int kSteps>
__device__ ByteOffset offset_of(const uint32_t (&left)[kSteps][4]) {
  float sums[4] = {};
#pragma unroll
  for (int step = 0; step < kSteps; ++step)
    multiply<__half>(sums, left[step], packed_ones<__half>(), packed_ones<__half>());
  return ByteOffset({sums[0], sums[2]});
}
template <int kTiles>
__device__ void add_offset(float (&products)[kTiles][4], const ByteOffset& offset) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) products[n][i] = __fadd_rn(products[n][i], offset.of_row[i / 2]);
}

// The block's query heads, to shared memory.
template <int kDim, typename P>
__device__ __forceinline__ void copy_queries(const PrefillBlock<P>& block, Operand<P>* to) {
  using Layout = Swizzle<kDim>;
  for (int i = static_cast<int>(threadIdx.x); i < block.used * Layout::kVectors; i += kTileThreads) {
    const int m = i / Layout::kVectors, vector = i % Layout::kVectors;
    const int row = block.row_of(m);
    const int64_t head = static_cast<int64_t>(block.piece.first + row) * block.args.rows.heads +
                         block.tile.first_head + (m - row * block.tile.heads);
    copy_or_clear(to + Layout::at(m, vector), block.args.q + (head * Layout::kVectors + vector) * 8, true);
  }
}

// The products of a warp's rows with the keys of a chunk.
template <int kDim, typename P>
__device__ __forceinline__ void score_chunk(float (&scores)[8][4], const Operand<P>* queries, const P* keys,
                                            int first_row) {
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
    uint32_t q[4];
    load_queries<kDim, P>(q, queries, first_row, step);
#pragma unroll
    for (int n = 0; n < 8; n += 2) {
      uint32_t pair[4];
      load_page_keys<kDim>(pair, keys, n * 8, step);
      multiply<Operand<P>>(scores[n], q, pair[0], pair[1]);
      multiply<Operand<P>>(scores[n + 1], q, pair[2], pair[3]);
    }
  }
}

template <typename P, int kDim>
__global__ __launch_bounds__(kTileThreads) void prefill_kernel(const __grid_constant__ PrefillArgs<P> args) {
  using T = Operand<P>;
  constexpr bool kScaled = PageFormat<P>::kScaled;
  constexpr int kTogether = 4;
  extern __shared__ __align__(kTileAlignment) unsigned char memory[];
  auto& shared = *reinterpret_cast<PrefillShared<P, kDim>*>(memory);
  const int warp = static_cast<int>(threadIdx.x / 32);
  wait_for_inputs();
  const PrefillBlock<P> block(args, static_cast<int>(blockIdx.x));
  if (block.piece.count <= 0) return;
  const Seen seen_by_warp = block.seen_by_warp();

  const auto copy_chunk = [&](int chunk, int page, int stage) {
    const int slot = block.slot_in(page, chunk);
    const PageVectors<P, kDim> vectors(slot);
    vectors.copy(shared.k[stage], args.pages.k);
    vectors.copy(shared.v[stage], args.pages.v);
    end_copy_group();
    copy_terms(args, slot, block.lane_key, stage, shared);
  };
  const int last = block.last_chunk();
  int chunk = block.first_chunk(), stage = 0;
  int page = -1;
  if (chunk <= last) {
    copy_queries<kDim>(block, shared.q);
    copy_chunk(chunk, block.page_in(chunk), stage);
    page = block.page_in(chunk + 1);
  }

  float maximum[2] = {kNothing, kNothing}, sum[2] = {}, total[kDim / 8][4] = {};
  [[maybe_unused]] ByteOffset query_offset{};
  if constexpr (kScaled) {
    wait_for_copy_groups<0>();
    __syncthreads();  // the queries have arrived
    uint32_t q[kDim / 16][4];
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step)
      load_queries<kDim, P>(q[step], shared.q, warp * kTileRows, step);
    query_offset = offset_of(q);
  }
  for (; chunk <= last; ++chunk, stage = 1 - stage) {
    wait_for_copy_groups<0>();
    __syncthreads();  // all copies are visible, and the other stage is no longer read
    if (chunk < last) {
      copy_chunk(chunk + 1, page, 1 - stage);
      page = block.page_in(chunk + 2);
    }
    if (!seen_by_warp.touches(chunk)) continue;

    float scores[8][4] = {};
    score_chunk<kDim>(scores, shared.q, shared.k[stage], warp * kTileRows);
    if constexpr (kScaled) add_offset(scores, query_offset);
    RowWeights weights;
    block.weigh_chunk(chunk, terms_in(shared, stage), scores, weights);
    [[maybe_unused]] ByteOffset weight_offset;
    if constexpr (kScaled) weight_offset = offset_of(weights.left);
    MergeWeights merge[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      merge[r] = merge_maximum(maximum[r], weights.top[r]);
      sum[r] = merged(sum[r], weights.sums[r], merge[r]);
    }
#pragma unroll
    for (int first = 0; first < kDim / 8; first += kTogether) {
      float values[kTogether][4] = {};
#pragma unroll
      for (int step = 0; step < kChunk / 16; ++step)
#pragma unroll
        for (int n = 0; n < kTogether; n += 2) {
          uint32_t b[4];
          load_page_values<kDim>(b, shared.v[stage], (first + n) * 8, step);
          multiply<T>(values[n], weights.left[step], b[0], b[1]);
          multiply<T>(values[n + 1], weights.left[step], b[2], b[3]);
        }
      if constexpr (kScaled) add_offset(values, weight_offset);
      arrange<P>(values);
#pragma unroll
      for (int n = 0; n < kTogether; ++n)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          total[first + n][j] = merged(total[first + n][j], values[n][j], merge[j / 2]);
    }
  }
  store_rows<P, kDim>(block, sum, total);
}

}  // namespace

void prefill_attention(Context& ctx, const AttentionCall& call, TensorView rounded_q, bool skip_single_rows) {
  CHECK(call.out.dtype() == DType::f32 || call.out.stride(0) % 4 == 0,
        "attention: rows of out are not aligned to four values of 16 bits");
  const HeadTiling tiling(call.layout, kTileRows);
  const int64_t rows_per_block = kBlockRows / tiling.heads_per_tile;
  const int64_t row_blocks = blocks_for(call.qkv.dim(0), rows_per_block);
  with_tensor_form(call, [&](auto type, auto dim) {
    using P = decltype(type);
    constexpr int kDim = decltype(dim)::value;
    const Rows rows = rows_of(call);
    const int64_t pieces = row_blocks + rows.sequence_count, tiles = call.layout.kv_heads * tiling.tiles;
    CHECK(pieces * tiles < int64_t{1} << 31, "attention: ", call.qkv.dim(0), " rows in one call");
    const int64_t multiprocessors = machine_of(ctx).multiprocessors;
    const bool halves = multiprocessors < pieces * tiles && pieces * tiles <= 2 * multiprocessors + tiles;
    const PrefillArgs<P> args{rows,
                              pages_of<P>(call),
                              out_of(call),
                              static_cast<const Operand<P>*>(rounded_q.data()),
                              score_scale(kDim),
                              tiling,
                              row_reciprocal(tiling.heads_per_tile),
                              static_cast<int>(rows_per_block),
                              static_cast<int>(row_blocks),
                              static_cast<int>(pieces),
                              static_cast<int>(tiles),
                              skip_single_rows,
                              halves};
    if constexpr (!PageFormat<P>::kScaled)
      if (suits_prefill_sm90(ctx, call, tiling)) return launch_prefill_sm90(ctx, call, rounded_q, args);
    const Grid grid{dim3(static_cast<unsigned>(pieces * tiles)), dim3(kTileThreads),
                    sizeof(PrefillShared<P, kDim>)};
    launch(ctx, "prefill_attention", grid, prefill_kernel<P, kDim>, args);
  });
}

}  // namespace shoal::ops::cuda
