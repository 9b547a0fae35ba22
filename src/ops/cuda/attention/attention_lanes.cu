// paged_attention() for cases outside the tensor core kernels: any even head_dim, f32 caches.
#include "ops/cuda/attention/attention_lanes.cuh"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {
namespace {

template <typename T>
struct LaneArgs {
  Rows rows;
  Pages<T> pages;
  Out out;
  float scale;
};

template <typename T, int kPairs>
__global__ __launch_bounds__(32 * kLaneWarps) void lane_kernel(const __grid_constant__ LaneArgs<T> args) {
  constexpr int kTogether = kPairs > 4 ? 1 : 8;  // values whose loads are in flight at once
  extern __shared__ __align__(16) unsigned char memory[];
  const Rows& rows = args.rows;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int dim = rows.dim;
  float* const q = reinterpret_cast<float*>(memory) + warp * ((dim + 3) / 4 * 4);
  wait_for_inputs();
  const int64_t task = static_cast<int64_t>(blockIdx.x) * kLaneWarps + warp;
  if (task >= static_cast<int64_t>(rows.count) * rows.heads) return;
  const int64_t row = task / rows.heads;
  const int head = static_cast<int>(task % rows.heads), kv_head = head / rows.group();
  const int position = rows.positions[row];
  LaneSums<kPairs> total;
  if (position < 0) return total.store(args.out, row, head * dim, dim);

  for (int d = lane; d < dim; d += 32) q[d] = rows.q(row, head)[d];
  __syncwarp();
  const int sequence = rows.sequences[row], first = rows.first_seen(position);
  for (int chunk = first / kLaneChunk * kLaneChunk; chunk <= position; chunk += kLaneChunk) {
    const int at = chunk + lane;
    const bool seen = first <= at && at <= position;
    const int slot = seen ? args.pages.slot(args.pages.page_of(sequence, at), kv_head, at) : 0;
    const int begin = max(first, chunk) - chunk, end = min(position, chunk + kLaneChunk - 1) - chunk + 1;
    HeadPairs<kPairs> values[kTogether];
    const auto load_values = [&](int key) {
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const int from = __shfl_sync(~0u, slot, min(key + i, end - 1));
        values[i].load(args.pages.v + static_cast<int64_t>(from) * dim, dim);
      }
    };
    load_values(begin);
    const float score =
        seen ? scaled_score(dot(q, args.pages.k + static_cast<int64_t>(slot) * dim, dim), args.scale) : 0.0f;
    const ChunkWeights weights(score, seen);
    HeadPairs<kPairs> sums{};
    for (int key = begin; key < end; key += kTogether) {
      if (key != begin) load_values(key);
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const float weight = __shfl_sync(~0u, weights.weight, min(key + i, end - 1));
        if (key + i < end) add_value(sums, weight, values[i]);
      }
    }
    total.merge(weights, sums);
  }
  total.store(args.out, row, head * dim, dim);
}

}  // namespace

void lane_attention(Context& ctx, const AttentionCall& call) {
  const int64_t dim = call.layout.head_dim, tasks = call.qkv.dim(0) * call.layout.heads;
  const Grid grid{dim3(static_cast<unsigned>(blocks_for(tasks, kLaneWarps))), dim3(32 * kLaneWarps),
                  static_cast<size_t>(kLaneWarps * ((dim + 3) / 4 * 4)) * sizeof(float)};
  with_float_type(call.cache.k.dtype(), [&](auto type) {
    using T = decltype(type);
    const LaneArgs<T> args{rows_of(call), pages_of<T>(call), out_of(call), score_scale(dim)};
    const auto kernel = dim <= 64 ? lane_kernel<T, 1> : dim <= 128 ? lane_kernel<T, 2> : lane_kernel<T, 16>;
    launch(ctx, "lane_attention", grid, kernel, args);
  });
}

}  // namespace shoal::ops::cuda
