// y = epilogue(x W^T) for at most 16 rows of x and 16-bit weights, as at each step of decoding.
//
// Bound by memory: every weight is read once, rows * depth * outputs multiplications are hidden behind it. A
// decode step is hundreds of such kernels of one or two microseconds each, so a kernel asks for its weights
// before it waits for its predecessor: it can start while that one still runs (launch.cuh), and when its
// inputs are there, the weights are too.
//
// A block of eight warps owns kTileRows rows of tiles; warp s computes segment s of them (matrix_layout.cuh),
// and the epilogue adds the segments. Whether x is normed here or before, and how many rows there are,
// changes no bits.
#pragma once

#include "ops/cuda/async_copy.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/mma.cuh"
#include "ops/cuda/product_epilogue.cuh"
#include "ops/cuda/row_norm.cuh"

namespace shoal::ops::cuda {

constexpr int kSkinnyThreads = kSegments * 32;

struct SkinnyArguments {
  const uint4* weight;
  const void* x;
  int64_t x_stride;
  int rows, depth, outputs;
  int tile_rows, row_tiles, segment_tiles;
  bool paired;
  const float* norm_weight;  // f32 x only; null: no norm
  float eps;
  ProductEpilogue epilogue;
};

// The parts of a block's shared memory, in bytes from its start.
struct SkinnyShared {
  int x_stride;  // 16-byte vectors between rows of x: an odd number, so that eight rows' vectors of one place
                 // use all banks once
  int sums, before, bias, scale, norm;
  int waiting;  // rows of f32 that are normed after others
  int bytes;

  __host__ __device__ SkinnyShared(int rows, int row_tiles, int tile_rows, bool norm_here)
      : x_stride(row_tiles * 4 + 1) {
    sums = rows * x_stride * 16;
    before = sums + tile_rows * kSegments * kTileFloats * 4;  // what y held
    bias = before + tile_rows * kTileFloats * 4;
    scale = bias + tile_rows * kTileOutputs * 4;
    norm = scale + tile_rows * kTileOutputs * 4;
    waiting = norm + (norm_here ? row_tiles * kTileInputs * 4 : 0);
    bytes = waiting + (norm_here && rows > kSegments ? (rows - kSegments) * row_tiles * kTileInputs * 4 : 0);
  }
  static constexpr int kTileFloats = 16 * kTileOutputs;  // results of a tile
};

// Four floats as the inputs of a product of T.
template <typename T>
__device__ inline uint2 narrowed(const float4& v) {
  T four[4];
  if constexpr (std::is_same_v<T, __half>) {
    four[0] = __float2half_rn(v.x), four[1] = __float2half_rn(v.y);
    four[2] = __float2half_rn(v.z), four[3] = __float2half_rn(v.w);
  } else {
    four[0] = __float2bfloat16_rn(v.x), four[1] = __float2bfloat16_rn(v.y);
    four[2] = __float2bfloat16_rn(v.z), four[3] = __float2bfloat16_rn(v.w);
  }
  uint2 packed;
  memcpy(&packed, four, sizeof packed);
  return packed;
}

template <typename T, bool kFloatInput>
struct SkinnyInput {
  // Brings x into shared memory as rows of T, zeros after `depth`. Ends without a barrier.
  static __device__ void stage(const SkinnyArguments& a, const SkinnyShared& at, char* shared) {
    uint4* to = reinterpret_cast<uint4*>(shared);
    const int vectors = a.depth / 8, padded = a.row_tiles * 4, thread = static_cast<int>(threadIdx.x);
    for (int row = 0; row < a.rows; ++row)
      for (int v = vectors + thread; v < padded; v += kSkinnyThreads) to[row * at.x_stride + v] = uint4{};
    if constexpr (!kFloatInput) {
      for (int row = 0; row < a.rows; ++row)
        for (int v = thread; v < vectors; v += kSkinnyThreads)
          copy_async<16>(&to[row * at.x_stride + v], static_cast<const T*>(a.x) + row * a.x_stride + v * 8);
    } else if (a.norm_weight) {
      stage_normed(a, at, shared);
    } else {
      for (int row = 0; row < a.rows; ++row) {
        const float* from = static_cast<const float*>(a.x) + row * a.x_stride;
        for (int v = thread; v < vectors; v += kSkinnyThreads) {
          const uint2 low = narrowed<T>(*reinterpret_cast<const float4*>(from + v * 8));
          const uint2 high = narrowed<T>(*reinterpret_cast<const float4*>(from + v * 8 + 4));
          to[row * at.x_stride + v] = {low.x, low.y, high.x, high.y};
        }
      }
    }
  }

  // Warp w norms rows w and w + 8. The norm's weights are on their way into shared memory (start_constants);
  // so is the second row while the first is being normed, every lane's inputs to where it will read them
  // itself.
  static __device__ void stage_normed(const SkinnyArguments& a, const SkinnyShared& at, char* shared) {
    const float* weight = reinterpret_cast<const float*>(shared + at.norm);
    const int row = static_cast<int>(threadIdx.x / 32), second = row + kSegments;
    const float* from = static_cast<const float*>(a.x) + row * a.x_stride;
    float* waiting = reinterpret_cast<float*>(shared + at.waiting) + row * a.depth;
    if (second < a.rows)
      for (int k = static_cast<int>(threadIdx.x % 32) * 4; k < a.depth; k += 128)
        copy_async<16>(waiting + k, from + kSegments * a.x_stride + k);

    const auto weights = [&](int k) { return *reinterpret_cast<const float4*>(weight + k); };
    uint2* to = reinterpret_cast<uint2*>(shared) + row * at.x_stride * 2;
    const auto store = [&](int k, const float4& y) { to[k / 4] = narrowed<T>(y); };
    RowNorm norm;
    if (row < a.rows) norm.measure(from, a.depth, a.eps, true);
    wait_for_copies();
    __syncthreads();
    if (row < a.rows) norm.write(from, a.depth, true, weights, store);
    if (second >= a.rows) return;
    to += kSegments * at.x_stride * 2;
    norm.measure(waiting, a.depth, a.eps, true);
    norm.write(waiting, a.depth, true, weights, store);
  }
};

// Starts the copies of what is constant: norm weights, bias, scale.
template <int kTileRows>
__device__ inline void start_constants(const SkinnyArguments& a, const SkinnyShared& at, char* shared,
                                       int first) {
  const int thread = static_cast<int>(threadIdx.x);
  if (a.norm_weight)
    for (int k = thread * 4; k < a.depth; k += kSkinnyThreads * 4)
      copy_async<16>(shared + at.norm + k * 4, a.norm_weight + k);
  const int n = first * kTileOutputs + thread;
  if (a.paired || thread >= kTileRows * kTileOutputs || n >= a.outputs) return;
  if (a.epilogue.bias) copy_async<4>(shared + at.bias + thread * 4, a.epilogue.bias + n);
  if (a.epilogue.scale) copy_async<4>(shared + at.scale + thread * 4, a.epilogue.scale + n);
}

// Result i of a block: 8 outputs of 16 rows of a row of tiles, then of the next.
struct SkinnyResult {
  int tile_row, row, output;
  __device__ explicit SkinnyResult(int i)
      : tile_row(i / SkinnyShared::kTileFloats), row(i / kTileOutputs % 16), output(i % kTileOutputs) {}
};

// Starts the copies of what y holds.
template <int kTileRows>
__device__ inline void start_before(const SkinnyArguments& a, const SkinnyShared& at, char* shared,
                                    int first) {
  if (!a.epilogue.accumulate) return;
  for (int i = static_cast<int>(threadIdx.x); i < kTileRows * SkinnyShared::kTileFloats;
       i += kSkinnyThreads) {
    const SkinnyResult result(i);
    const int n = (first + result.tile_row) * kTileOutputs + result.output;
    if (result.row < a.rows && n < a.outputs)
      copy_async<4>(shared + at.before + i * 4,
                    static_cast<const float*>(a.epilogue.y) + result.row * a.epilogue.y_stride + n);
  }
}

// The segments' sums of result i, added in order.
__device__ inline float segments_sum(const float* sums, const SkinnyResult& result, int segments) {
  const float* from = sums + (result.tile_row * kSegments * 16 + result.row) * kTileOutputs + result.output;
  float sum = 0.0f;
#pragma unroll
  for (int segment = 0; segment < kSegments; ++segment)
    if (segment < segments) sum = __fadd_rn(sum, from[segment * SkinnyShared::kTileFloats]);
  return sum;
}

template <int kTileRows>
__device__ inline void finish(const SkinnyArguments& a, const SkinnyShared& at, const char* shared,
                              int first) {
  const float* sums = reinterpret_cast<const float*>(shared + at.sums);
  const float* before = reinterpret_cast<const float*>(shared + at.before);
  const float* bias = reinterpret_cast<const float*>(shared + at.bias);
  const float* scale = reinterpret_cast<const float*>(shared + at.scale);
  const int segments = (a.row_tiles + a.segment_tiles - 1) / a.segment_tiles;
  const int results = kTileRows * SkinnyShared::kTileFloats / (a.paired ? 2 : 1);
  for (int i = static_cast<int>(threadIdx.x); i < results; i += kSkinnyThreads) {
    SkinnyResult result(i);
    const int local = result.tile_row * kTileOutputs + result.output;
    const int n = (a.paired ? first / 2 : first) * kTileOutputs + local;
    if (result.row >= a.rows || n >= a.outputs) continue;
    if (a.paired) {
      result.tile_row *= 2;
      const float gate = segments_sum(sums, result, segments);
      ++result.tile_row;
      store_swiglu(a.epilogue, result.row, n, gate, segments_sum(sums, result, segments));
      continue;
    }
    const float value =
        epilogue_value(segments_sum(sums, result, segments), a.epilogue.bias ? bias[local] : 0.0f,
                       a.epilogue.scale ? scale[local] : 1.0f, a.epilogue.accumulate ? before[i] : 0.0f,
                       a.epilogue.activation);
    store_value(a.epilogue.y, result.row * a.epilogue.y_stride + n, a.epilogue.y_dtype, value);
  }
}

// 64 registers of weights on their way in each thread, of 128: two blocks fit a multiprocessor, of this
// kernel and of the next one.
template <typename T, int kTileRows, bool kFloatInput>
__global__ void __launch_bounds__(kSkinnyThreads, 2) skinny_kernel(const SkinnyArguments a) {
  constexpr int kAhead = 16 / kTileRows;  // tiles of each row of tiles
  extern __shared__ uint4 shared_vectors[];
  char* shared = reinterpret_cast<char*>(shared_vectors);
  allow_next();
  const SkinnyShared at(a.rows, a.row_tiles, kTileRows, a.norm_weight != nullptr);
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0),
            lane = static_cast<int>(threadIdx.x % 32);
  const int first = static_cast<int>(blockIdx.x) * kTileRows, valid = min(kTileRows, a.tile_rows - first);
  const int begin = min(warp * a.segment_tiles, a.row_tiles),
            tiles = min(a.segment_tiles, a.row_tiles - begin);

  const uint4* const tiles_from = a.weight + (static_cast<int64_t>(first) * a.row_tiles + begin) * 32;
  const uint4* const source = tiles_from + lane / 4 * 4 + swizzled_chunk(lane / 4, lane % 4);
  const int row_vectors = a.row_tiles * 32;
  uint4 weights[kAhead][kTileRows];
#pragma unroll
  for (int s = 0; s < kAhead; ++s)
#pragma unroll
    for (int r = 0; r < kTileRows; ++r)
      weights[s][r] = s < tiles && r < valid ? load_weight(source + r * row_vectors + s * 32) : uint4{};
  if (lane < valid && tiles > kAhead)
    prefetch_weights(tiles_from + lane * row_vectors + kAhead * 32, (tiles - kAhead) * kTileBytes);
  start_constants<kTileRows>(a, at, shared, first);

  wait_for_inputs();
  start_before<kTileRows>(a, at, shared, first);
  SkinnyInput<T, kFloatInput>::stage(a, at, shared);
  wait_for_copies();
  __syncthreads();

  const auto chunks_of = [&](int row) {  // of what the lane loads for its warp
    return reinterpret_cast<const uint4*>(shared) + min(row, a.rows - 1) * at.x_stride + begin * 4 + lane / 8;
  };
  const uint4* const low_from = chunks_of(lane % 8);
  const uint4* const high_from = chunks_of(lane % 8 + 8);
  const bool has_low = lane / 4 < a.rows, has_high = lane / 4 + 8 < a.rows;
  float sums[kTileRows][4] = {};
  for (int start = 0; start < tiles; start += kAhead) {
#pragma unroll
    for (int s = 0; s < kAhead; ++s) {
      const int t = start + s;
      if (t >= tiles) break;
      uint4 low = load_operand(low_from + t * 4), high{};
      if (!has_low) low = uint4{};
      if (a.rows > 8) high = load_operand(high_from + t * 4);
      if (!has_high) high = uint4{};
#pragma unroll
      for (int r = 0; r < kTileRows; ++r)
        multiply_tile<T>(sums[r], low, high, operand_of_chunks(weights[s][r]));
      if (t + kAhead >= tiles) continue;
#pragma unroll
      for (int r = 0; r < kTileRows; ++r)
        if (r < valid) weights[s][r] = load_weight(source + r * row_vectors + (t + kAhead) * 32);
    }
  }

  float2* sums_to =
      reinterpret_cast<float2*>(shared + at.sums) + warp * (SkinnyShared::kTileFloats / 2) + lane;
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    sums_to[r * kSegments * (SkinnyShared::kTileFloats / 2)] = {sums[r][0], sums[r][1]};
    if (a.rows > 8) sums_to[r * kSegments * (SkinnyShared::kTileFloats / 2) + 32] = {sums[r][2], sums[r][3]};
  }
  __syncthreads();
  finish<kTileRows>(a, at, shared, first);
}

// False, and nothing is started: x does not fit into shared memory. (skinny_launch.cuh)
template <typename T, bool kFloatInput>
bool launch_skinny(Context& ctx, const SkinnyArguments& arguments);

}  // namespace shoal::ops::cuda
