// Attention within utterances, in f32 on the ordinary units: a block moves 16 queries of one head past the
// keys of their segment, 64 at a time; the next keys are fetched while the current ones are processed.
//
// A score is one chain of fma over the head's dimensions. Keys are taken in tiles counted from the segment's
// first row. Per tile: the largest score, then the weights relative to the largest so far, added up by eight
// pairs of lanes; values are added in the order of their keys. The position of a query in its block does not
// matter.
#include <cmath>

#include "ops/cuda/device/alignment.h"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/ptx/async_copy.cuh"
#include "ops/cuda/rows/segment_rows.cuh"
#include "ops/cuda/rows/with_type.cuh"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kQueries = 16, kKeys = 64;  // of a tile
constexpr int kLanes = 16;                // of a pair of queries: a lane has keys lane, lane + 16, ...
constexpr int kPair = 2;
constexpr int kThreads = kQueries / kPair * kLanes;
constexpr int kKeysOfLane = kKeys / kLanes;
constexpr int kWeightPitch = kKeys + 4;

struct AttentionArguments {
  const float* qkv;
  int64_t stride;
  int heads, dim;
  bool vectors;  // rows of every head are 16-byte aligned, whole vectors
  float scale;
  SegmentRows segments;
  void* out;
  int64_t out_stride;
  bool out_vectors;

  // part: 0 queries, 1 keys, 2 values.
  __device__ const float* at(int part, int64_t row, int head) const {
    return qkv + row * stride + (part * heads + head) * dim;
  }
};

// Rows of a head in shared memory: zeros beyond the dimension, and a vector more so that neighbouring rows
// begin in different banks.
template <int kDim>
struct Tile {
  static constexpr int kPitch = kDim + 4;
  // Two turns where there is room: the next tile comes while this one is used.
  static constexpr int kTurns = kDim <= 64 ? 2 : 1;
  static constexpr int kFloats = kKeys * kPitch;
  static constexpr int kSharedFloats = kQueries * kPitch + kQueries * kWeightPitch + 2 * kTurns * kFloats;
};

// `count` rows of a head from `row` on, zeros up to kRows. A copy that has been started or done.
template <int kRows, int kDim>
__device__ void bring(const AttentionArguments& a, int part, int64_t row, int count, int head, float* to) {
  constexpr int kPitch = Tile<kDim>::kPitch, kFours = kDim / 4;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kFours; i += kThreads) {
    const int own = i / kFours, k = i % kFours * 4;
    float* const four = to + own * kPitch + k;
    if (a.vectors && own < count && k < a.dim)
      copy_async<16>(four, a.at(part, row + own, head) + k);
    else
      *reinterpret_cast<float4*>(four) =
          own < count ? load_four(a.at(part, row + own, head), k, a.dim, false) : float4{};
  }
}

__device__ inline float dot(const float4& a, const float4& b, float sum) {
  return __fmaf_rn(a.w, b.w, __fmaf_rn(a.z, b.z, __fmaf_rn(a.y, b.y, __fmaf_rn(a.x, b.x, sum))));
}

template <typename Combine>
__device__ inline float over_lanes(float value, Combine combine) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(~0u, value, distance));
  return value;
}

// The running result of a pair of queries, in its lanes: of the values, the lane's dimensions 4 lane + 64 i.
template <int kDim>
struct PairState {
  static constexpr int kFours = (kDim + 63) / 64;
  float most[kPair], weight[kPair];
  float4 sums[kPair][kFours];

  __device__ PairState() {
#pragma unroll
    for (int q = 0; q < kPair; ++q) {
      most[q] = -INFINITY;
      weight[q] = 0.0f;
#pragma unroll
      for (int i = 0; i < kFours; ++i) sums[q][i] = float4{};
    }
  }

  // queries: the pair's two rows; weights: room for their two rows.
  __device__ void meet(const float* queries, const float* keys, const float* values, int count, float scale,
                       float* weights) {
    constexpr int kPitch = Tile<kDim>::kPitch;
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    float scores[kPair][kKeysOfLane] = {};
#pragma unroll 4
    for (int k = 0; k < kDim; k += 4) {
      float4 q[kPair];
#pragma unroll
      for (int i = 0; i < kPair; ++i) q[i] = *reinterpret_cast<const float4*>(queries + i * kPitch + k);
#pragma unroll
      for (int j = 0; j < kKeysOfLane; ++j) {
        const float4 key = *reinterpret_cast<const float4*>(keys + (lane + j * kLanes) * kPitch + k);
#pragma unroll
        for (int i = 0; i < kPair; ++i) scores[i][j] = dot(q[i], key, scores[i][j]);
      }
    }
#pragma unroll
    for (int i = 0; i < kPair; ++i) {
      float largest = -INFINITY;
#pragma unroll
      for (int j = 0; j < kKeysOfLane; ++j) {
        scores[i][j] = lane + j * kLanes < count ? __fmul_rn(scores[i][j], scale) : -INFINITY;
        largest = fmaxf(largest, scores[i][j]);
      }
      largest = fmaxf(most[i], over_lanes(largest, [](float x, float y) { return fmaxf(x, y); }));
      float sum = 0.0f;
#pragma unroll
      for (int j = 0; j < kKeysOfLane; ++j) {
        const float own = expf(__fsub_rn(scores[i][j], largest));
        weights[i * kWeightPitch + lane + j * kLanes] = own;
        sum = __fadd_rn(sum, own);
      }
      sum = over_lanes(sum, [](float x, float y) { return __fadd_rn(x, y); });
      const float before = expf(__fsub_rn(most[i], largest));
      most[i] = largest;
      weight[i] = __fmaf_rn(weight[i], before, sum);
#pragma unroll
      for (int f = 0; f < kFours; ++f) {
        float4& s = sums[i][f];
        s = {__fmul_rn(s.x, before), __fmul_rn(s.y, before), __fmul_rn(s.z, before), __fmul_rn(s.w, before)};
      }
    }
    __syncwarp();  // the pair's lanes are of one warp
#pragma unroll 2
    for (int key = 0; key < kKeys; key += 4) {
      float4 own[kPair];
#pragma unroll
      for (int i = 0; i < kPair; ++i)
        own[i] = *reinterpret_cast<const float4*>(weights + i * kWeightPitch + key);
#pragma unroll
      for (int f = 0; f < kFours; ++f) {
        const int k = 4 * lane + 64 * f;
        if (kDim % 64 != 0 && k >= kDim) continue;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float4 v = *reinterpret_cast<const float4*>(values + (key + j) * kPitch + k);
#pragma unroll
          for (int i = 0; i < kPair; ++i) {
            const float w = (&own[i].x)[j];
            float4& s = sums[i][f];
            s = {__fmaf_rn(w, v.x, s.x), __fmaf_rn(w, v.y, s.y), __fmaf_rn(w, v.z, s.z),
                 __fmaf_rn(w, v.w, s.w)};
          }
        }
      }
    }
    __syncwarp();  // before the weights are written again
  }
};

template <typename T>
__device__ void clear_rows(const AttentionArguments& a, const Gap& gap, int head) {
  for (int64_t row = gap.begin; row < gap.end; ++row)
    for (int k = static_cast<int>(threadIdx.x); k < a.dim; k += kThreads)
      (static_cast<T*>(a.out) + row * a.out_stride + head * a.dim)[k] = narrowed_value<T>(0.0f);
}

// Grid: tiles of queries, heads.
template <int kDim, typename T>
__global__ void __launch_bounds__(kThreads) self_attention_kernel(const AttentionArguments a) {
  using KeyTile = Tile<kDim>;
  extern __shared__ float4 shared[];
  float* const queries = reinterpret_cast<float*>(shared);
  float* const weights = queries + kQueries * KeyTile::kPitch;
  float* const tiles = weights + kQueries * kWeightPitch;
  wait_for_inputs();
  const int head = static_cast<int>(blockIdx.y);
  const SegmentPiece piece = piece_of(a.segments, blockIdx.x, kQueries);
  if (piece.segment < 0) return;
  each_gap_of(a.segments, piece, [&](const Gap& gap) { clear_rows<T>(a, gap, head); });

  const int64_t begin = a.segments.begin(piece.segment);
  const int rows = static_cast<int>(a.segments.rows(piece.segment));
  const auto keys_of = [&](int turn) { return tiles + 2 * turn * KeyTile::kFloats; };
  const auto bring_keys = [&](int first, int turn) {
    const int count = min(kKeys, rows - first);
    bring<kKeys, kDim>(a, 1, begin + first, count, head, keys_of(turn));
    bring<kKeys, kDim>(a, 2, begin + first, count, head, keys_of(turn) + KeyTile::kFloats);
  };
  bring<kQueries, kDim>(a, 0, begin + piece.first, static_cast<int>(piece.count), head, queries);
  bring_keys(0, 0);

  const int pair = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;
  PairState<kDim> state;
  for (int first = 0, turn = 0; first < rows; first += kKeys) {
    wait_for_copies();
    __syncthreads();
    if (KeyTile::kTurns > 1 && first + kKeys < rows) bring_keys(first + kKeys, turn ^ 1);
    state.meet(queries + pair * kPair * KeyTile::kPitch, keys_of(turn), keys_of(turn) + KeyTile::kFloats,
               min(kKeys, rows - first), a.scale, weights + pair * kPair * kWeightPitch);
    if (KeyTile::kTurns > 1) {
      turn ^= 1;
    } else {
      __syncthreads();
      if (first + kKeys < rows) bring_keys(first + kKeys, 0);
    }
  }

#pragma unroll
  for (int i = 0; i < kPair; ++i) {
    if (pair * kPair + i >= piece.count) break;
    T* const row =
        static_cast<T*>(a.out) + (begin + piece.first + pair * kPair + i) * a.out_stride + head * a.dim;
#pragma unroll
    for (int f = 0; f < PairState<kDim>::kFours; ++f) {
      const int k = 4 * lane + 64 * f;
      const float4& s = state.sums[i][f];
      const float weight = state.weight[i];
      if (k < a.dim)
        store_four_as<T>(
            row, k, a.dim, a.out_vectors,
            {__fdiv_rn(s.x, weight), __fdiv_rn(s.y, weight), __fdiv_rn(s.z, weight), __fdiv_rn(s.w, weight)});
    }
  }
}

template <int kDim>
void launch_attention(Context& ctx, const Segments& segments, DType dtype,
                      const AttentionArguments& arguments) {
  const Grid grid{.blocks = dim3(static_cast<unsigned>(most_pieces(segments, kQueries)),
                                 static_cast<unsigned>(arguments.heads)),
                  .threads = dim3(kThreads),
                  .shared_bytes = Tile<kDim>::kSharedFloats * sizeof(float)};
  with_float_type(dtype, [&](auto type) {
    launch(ctx, "self_attention", grid, self_attention_kernel<kDim, decltype(type)>, arguments);
  });
}

}  // namespace

void self_attention(Context& ctx, TensorView qkv, int64_t heads, const Segments& segments, TensorView out) {
  const int64_t dim = qkv.dim(1) / (3 * heads);
  if (dim > 128)
    fail(ErrorCode::unsupported, "self_attention: expected heads of at most 128 values on a GPU, got ", dim);
  if (segments.count() == 0) return cuda::fill_zero(ctx, out);
  const bool fours = dim % 4 == 0;
  const AttentionArguments arguments{
      .qkv = qkv.as<float>(),
      .stride = qkv.stride(0),
      .heads = static_cast<int>(heads),
      .dim = static_cast<int>(dim),
      .vectors = fours && is_aligned(qkv.data(), 16) && qkv.stride(0) % 4 == 0,
      .scale = 1.0f / std::sqrt(static_cast<float>(dim)),
      .segments = segment_rows(segments),
      .out = out.data(),
      .out_stride = out.stride(0),
      .out_vectors = fours && is_aligned(out.data(), 4 * size_of(out.dtype())) && out.stride(0) % 4 == 0};
  if (dim <= 16) return launch_attention<16>(ctx, segments, out.dtype(), arguments);
  if (dim <= 64) return launch_attention<64>(ctx, segments, out.dtype(), arguments);
  launch_attention<128>(ctx, segments, out.dtype(), arguments);
}

}  // namespace shoal::ops::cuda
