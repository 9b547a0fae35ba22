// attend() for sequences of at most 32 positions with f32 keys: the fast transformer, whose calls are many
// and tiny. One warp per sequence and query head does all of it, with the arithmetic of attention_lanes.cuh;
// the warps of a group norm and turn the new key once each instead of waiting for each other. Where that is
// more warps than run at once, one has two query heads of a group, which read the same keys and values.
#include "ops/cuda/attention/attention_lanes.cuh"
#include "ops/cuda/device/launch.cuh"

namespace shoal::ops::cuda {
namespace {

struct ShortArgs {
  Rows rows;
  Pages<float> pages;
  HeadTurn turn;
  Out out;
  float scale;
  bool single_rows;
};

template <int kDim, int kHeads>
struct ShortShared {
  float q[kHeads][kDim], k[kDim];
};

constexpr int blocks_together(int dim) { return dim > 64 ? 2 : 4; }  // on a multiprocessor

template <int kDim, int kHeads>
__global__ __launch_bounds__(32 * kLaneWarps, blocks_together(kDim)) void short_kernel(
    const __grid_constant__ ShortArgs args) {
  constexpr int kPairs = (kDim / 2 + 31) / 32;
  constexpr int kTogether = kPairs > 1 ? 4 : 8;  // values whose loads are in flight at once
  __shared__ __align__(16) ShortShared<kDim, kHeads> memory[kLaneWarps];
  const Rows& rows = args.rows;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  ShortShared<kDim, kHeads>& shared = memory[warp];
  const int task = static_cast<int>(blockIdx.x) * kLaneWarps + warp;
  const int tasks = rows.heads / kHeads;  // of a sequence
  const int sequence = task / tasks, first_head = task % tasks * kHeads, kv_head = first_head / rows.group();
  if (sequence >= rows.sequence_count) return wait_for_inputs();
  HeadPairs<kPairs> q_weight, k_weight;
  if (args.turn.q_weight) q_weight.load(args.turn.q_weight, kDim);
  if (args.turn.k_weight) k_weight.load(args.turn.k_weight, kDim);

  const int begin = args.single_rows ? sequence : rows.offsets[sequence];
  const int end = args.single_rows ? sequence + 1 : rows.offsets[sequence + 1];
  if (begin == end) return wait_for_inputs();
  const int page = args.pages.page_near(sequence, lane);
  for (int row = begin; row < end; ++row) {
    // The keys and values of the rows before this one are on their way while it is turned; and those before
    // the first, which are older than qkv (attention.h), before that is there.
    HeadPairs<kPairs> turns;
    const int position = rows.positions[row];
    if (position >= 0) turns.load_turns(args.turn, position, kDim);
    const int first = rows.first_seen(position);
    const bool seen = first <= lane && lane <= position;
    const int slot = seen ? args.pages.slot(page, kv_head, lane) : 0;
    float4 key[kDim / 4];
    if (seen && lane < position) {
#pragma unroll
      for (int i = 0; i < kDim / 4; ++i)
        key[i] = reinterpret_cast<const float4*>(args.pages.k + static_cast<int64_t>(slot) * kDim)[i];
    }
    HeadPairs<kPairs> values[kTogether];
    const auto load_values = [&](int from) {
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const int at = __shfl_sync(~0u, slot, min(from + i, kLaneChunk - 1));
        if (from + i < position) values[i].load(args.pages.v + static_cast<int64_t>(at) * kDim, kDim);
      }
    };
    load_values(first);
    if (row == begin) wait_for_inputs();

    HeadPairs<kPairs> q[kHeads], k, v;
#pragma unroll
    for (int h = 0; h < kHeads; ++h) q[h].load(rows.q(row, first_head + h), kDim);
    k.load(rows.k(row, kv_head), kDim);
    v.load(rows.v(row, kv_head), kDim);
    LaneSums<kPairs> totals[kHeads];
    if (position < 0) {
#pragma unroll
      for (int h = 0; h < kHeads; ++h) totals[h].store(args.out, row, (first_head + h) * kDim, kDim);
      continue;
    }
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      if (args.turn.q_weight) q[h].norm(q_weight, kDim, args.turn.eps);
      q[h].rotate(turns);
      q[h].store(shared.q[h], kDim);
    }
    if (args.turn.k_weight) k.norm(k_weight, kDim, args.turn.eps);
    k.rotate(turns);
    k.store(shared.k, kDim);
    // Of several rows each warp writes all (the same bits), so that it can read them again for the next.
    if (first_head % rows.group() == 0 || end - begin > 1) {
      const int64_t own = __shfl_sync(~0u, slot, position);
      k.store(args.pages.k + own * kDim, kDim);
      v.store(args.pages.v + own * kDim, kDim);
    }
    __syncwarp();
    if (lane == position) {
#pragma unroll
      for (int i = 0; i < kDim / 4; ++i) key[i] = reinterpret_cast<const float4*>(shared.k)[i];
    }

    LaneDot<float> products[kHeads];
#pragma unroll
    for (int i = 0; i < kDim / 4; ++i) {
      const float(&four)[4] = reinterpret_cast<const float(&)[4]>(key[i]);
#pragma unroll
      for (int h = 0; h < kHeads; ++h) products[h].add(reinterpret_cast<const float4*>(shared.q[h])[i], four);
    }
    ChunkWeights weights[kHeads];
#pragma unroll
    for (int h = 0; h < kHeads; ++h)
      weights[h] = ChunkWeights(scaled_score(products[h].sum(), args.scale), seen);
    HeadPairs<kPairs> sums[kHeads] = {};
    for (int from = first; from <= position; from += kTogether) {
      if (from != first) load_values(from);
#pragma unroll
      for (int i = 0; i < kTogether; ++i)
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
          const float weight = __shfl_sync(~0u, weights[h].weight, min(from + i, kLaneChunk - 1));
          if (from + i < position) add_value(sums[h], weight, values[i]);
          if (from + i == position) add_value(sums[h], weight, v);
        }
    }
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      totals[h].merge(weights[h], sums[h]);
      totals[h].store(args.out, row, (first_head + h) * kDim, kDim);
    }
    __syncwarp();  // the next row takes this one's shared memory, and reads the pages
  }
}

}  // namespace

bool has_short_form(const HeadLayout& layout, DType cache, const BatchPlan& plan) {
  const int64_t dim = layout.head_dim, positions = plan.pages_per_sequence * plan.page_size;
  return cache == DType::f32 && (dim == 32 || dim == 64 || dim == 128) && 0 < positions &&
         positions <= kLaneChunk;
}

void short_attention(Context& ctx, const AttentionCall& call) {
  const ShortArgs args{rows_of(call),
                       pages_of<float>(call),
                       turn_of(call),
                       out_of(call),
                       score_scale(call.layout.head_dim),
                       call.plan->tables.single_rows};
  const int64_t heads = int64_t{args.rows.sequence_count} * call.layout.heads;
  const int64_t at_once = state_of(ctx).multiprocessors() * blocks_together(args.rows.dim) * kLaneWarps;
  const bool two = heads > at_once && call.layout.heads / call.layout.kv_heads % 2 == 0;
  const int64_t tasks = two ? heads / 2 : heads;
  const Grid grid{dim3(static_cast<unsigned>(blocks_for(tasks, kLaneWarps))), dim3(32 * kLaneWarps)};
  const auto kernel = call.layout.head_dim == 32   ? (two ? short_kernel<32, 2> : short_kernel<32, 1>)
                      : call.layout.head_dim == 64 ? (two ? short_kernel<64, 2> : short_kernel<64, 1>)
                                                   : (two ? short_kernel<128, 2> : short_kernel<128, 1>);
  launch(ctx, "short_attention", grid, kernel, args);
}

}  // namespace shoal::ops::cuda
