// attend() for sequences of at most 32 positions with f32 keys: the fast transformer, whose calls are many
// and tiny. One warp per sequence and query head does all of it, with the arithmetic of attention_lanes.cuh;
// the warps of a group norm and turn the new key once each instead of waiting for each other.
#include "ops/cuda/attention_lanes.cuh"
#include "ops/cuda/launch.cuh"

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

template <int kDim>
struct ShortShared {
  float q[kDim], k[kDim];
};

template <int kDim>
__global__ __launch_bounds__(32 * kLaneWarps,
                             kDim > 64 ? 2 : 4) void short_kernel(const __grid_constant__ ShortArgs args) {
  constexpr int kPairs = (kDim / 2 + 31) / 32;
  constexpr int kTogether = kPairs > 1 ? 4 : 8;  // values whose loads are under way at a time
  __shared__ __align__(16) ShortShared<kDim> memory[kLaneWarps];
  const Rows& rows = args.rows;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  ShortShared<kDim>& shared = memory[warp];
  const int task = static_cast<int>(blockIdx.x) * kLaneWarps + warp;
  const int sequence = task / rows.heads, head = task % rows.heads, kv_head = head / rows.group();
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

    HeadPairs<kPairs> q, k, v;
    q.load(rows.q(row, head), kDim);
    k.load(rows.k(row, kv_head), kDim);
    v.load(rows.v(row, kv_head), kDim);
    LaneSums<kPairs> total;
    if (position < 0) {
      total.store(args.out, row, head * kDim, kDim);
      continue;
    }
    if (args.turn.q_weight) q.norm(q_weight, kDim, args.turn.eps);
    q.rotate(turns);
    if (args.turn.k_weight) k.norm(k_weight, kDim, args.turn.eps);
    k.rotate(turns);
    q.store(shared.q, kDim);
    k.store(shared.k, kDim);
    // Of several rows each warp writes all (the same bits), so that it can read them again for the next.
    if (head % rows.group() == 0 || end - begin > 1) {
      const int64_t own = __shfl_sync(~0u, slot, position);
      k.store(args.pages.k + own * kDim, kDim);
      v.store(args.pages.v + own * kDim, kDim);
    }
    __syncwarp();
    if (lane == position) {
#pragma unroll
      for (int i = 0; i < kDim / 4; ++i) key[i] = reinterpret_cast<const float4*>(shared.k)[i];
    }

    LaneDot<float> product;
#pragma unroll
    for (int i = 0; i < kDim / 4; ++i) {
      const float(&four)[4] = reinterpret_cast<const float(&)[4]>(key[i]);
      product.add(reinterpret_cast<const float4*>(shared.q)[i], four);
    }
    const ChunkWeights weights(scaled_score(product.sum(), args.scale), seen);
    HeadPairs<kPairs> sums{};
    for (int from = first; from <= position; from += kTogether) {
      if (from != first) load_values(from);
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const float weight = __shfl_sync(~0u, weights.weight, min(from + i, kLaneChunk - 1));
        if (from + i < position) add_value(sums, weight, values[i]);
        if (from + i == position) add_value(sums, weight, v);
      }
    }
    total.merge(weights, sums);
    total.store(args.out, row, head * kDim, kDim);
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
  const int64_t tasks = args.rows.sequence_count * call.layout.heads;
  const Grid grid{dim3(static_cast<unsigned>(blocks_for(tasks, kLaneWarps))), dim3(32 * kLaneWarps)};
  const auto kernel = call.layout.head_dim == 32   ? short_kernel<32>
                      : call.layout.head_dim == 64 ? short_kernel<64>
                                                   : short_kernel<128>;
  launch(ctx, "short_attention", grid, kernel, args);
}

}  // namespace shoal::ops::cuda
