// Where the warps of skinny.cuh find the rows of x that they multiply.
#pragma once

#include <type_traits>

#include "ops/cuda/gemm/skinny/skinny_arguments.cuh"
#include "ops/cuda/ptx/async_copy.cuh"
#include "ops/cuda/ptx/mma.cuh"
#include "ops/cuda/rows/row_norm.cuh"

namespace shoal::ops::cuda {

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

// Rows as they lie in global memory, of T or of f32, in registers: kAhead tiles before they are used. Lane
// (g, q) loads the eight inputs q of row g in each tile, and of row g + 8 if kHigh.
template <typename T, bool kFloat, bool kHigh, int kAhead>
class DirectInput {
 public:
  // begin, tiles: the warp's segment.
  __device__ DirectInput(const SkinnyArguments& a, int begin, int tiles) : high_(a.x_stride * 8) {
    const int lane = static_cast<int>(threadIdx.x % 32), row = lane / 4, chunk = begin * 4 + lane % 4;
    const int chunks = min(a.depth / 8, (begin + tiles) * 4) - chunk;
    low_chunks_ = row < a.rows ? chunks : 0;
    high_chunks_ = row + 8 < a.rows ? chunks : 0;
    from_ = static_cast<const Element*>(a.x) + row * a.x_stride + chunk * 8;
    restart();
  }

  // Asks for the first tiles of the segment, which are to be taken once more.
  __device__ void restart() {
#pragma unroll
    for (int s = 0; s < kAhead; ++s) load(s, s);
  }

  // The operands of tile t of the segment. For every tile in order; s: t % kAhead.
  __device__ void take(int s, int t, uint4& low, uint4& high) {
    low = operand_of_chunks(chunk_of(ahead_[s][0]));
    if constexpr (kHigh) high = operand_of_chunks(chunk_of(ahead_[s][1]));
    load(s, t + kAhead);
  }

 private:
  using Element = std::conditional_t<kFloat, float, T>;
  struct Floats {
    float4 low, high;
  };
  using Eight = std::conditional_t<kFloat, Floats, uint4>;

  static __device__ uint4 chunk_of(const Eight& eight) {
    if constexpr (kFloat) {
      const uint2 low = narrowed<T>(eight.low), high = narrowed<T>(eight.high);
      return {low.x, low.y, high.x, high.y};
    } else {
      return eight;
    }
  }
  static __device__ Eight eight_from(const Element* from, bool present) {
    if (!present) return Eight{};
    if constexpr (kFloat)
      return {*reinterpret_cast<const float4*>(from), *reinterpret_cast<const float4*>(from + 4)};
    else
      return *reinterpret_cast<const uint4*>(from);
  }
  __device__ void load(int s, int t) {
    const Element* const from = from_ + t * kTileInputs;
    ahead_[s][0] = eight_from(from, t * 4 < low_chunks_);
    if constexpr (kHigh) ahead_[s][1] = eight_from(from + high_, t * 4 < high_chunks_);
  }

  const Element* from_;
  int64_t high_;
  int low_chunks_, high_chunks_;  // that there are from the lane's first one on
  Eight ahead_[kAhead][kHigh ? 2 : 1];
};

// Normed rows, at most kNormRows, which lie in shared memory.
class NormedInput {
 public:
  __device__ NormedInput(const SkinnyArguments& a, const NormedShared& at, const char* shared, int begin) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    // What the lane loads for its warp.
    from_ = reinterpret_cast<const uint4*>(shared + at.x) + min(lane % 8, a.rows - 1) * at.x_stride +
            begin * 4 + lane / 8;
  }

  __device__ void take(int, int t, uint4& low, uint4&) const {
    low = load_operand(from_ + t * 4);  // (of a row that there is not: another one's, to no use)
  }
  __device__ void restart() const {}

 private:
  const uint4* from_;
};

// Asks for the norm's weights of several rows.
__device__ inline void load_norm(const SkinnyArguments& a, const NormedShared& at, char* shared) {
  if (a.rows == 1) return;  // OneNormedRow
  for (int k = static_cast<int>(threadIdx.x) * 4; k < a.depth; k += static_cast<int>(blockDim.x) * 4)
    copy_async<16>(shared + at.norm + k * 4, a.norm_weight + k);
}

// Norms the rows of x into shared memory, zeros after `depth`; the norm's weights are on their way there.
// Warp w norms row w.  Norm: RowNormOf, by how much of a row registers hold.  asked(): called by each warp
// when it has asked for its row.
template <typename T, typename Norm = RowNorm, typename Asked>
__device__ inline void stage_normed(const SkinnyArguments& a, const NormedShared& at, char* shared,
                                    const Asked& asked) {
  const float* weight = reinterpret_cast<const float*>(shared + at.norm);
  const int row = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const bool exists = row < a.rows;
  const float* const from = static_cast<const float*>(a.x) + row * a.x_stride;
  Norm norm;
  if (exists)
    norm.measure(from, a.depth, a.eps, true, asked);
  else
    asked();
  wait_for_copies();
  __syncthreads();
  if (exists) {
    uint2* const to = reinterpret_cast<uint2*>(shared + at.x) + row * at.x_stride * 2;
    norm.write(
        from, a.depth, true, [&](int k) { return *reinterpret_cast<const float4*>(weight + k); },
        [&](int k, const float4& y) { to[k / 4] = narrowed<T>(y); });
    if (const int k = a.depth + lane * 4; k < a.row_tiles * kTileInputs) to[k / 4] = uint2{};
  }
  __syncthreads();
}

// The same for a single row, which the warps share out: piece i of 128 inputs is warp i % kSegments's. What a
// warp has read waits in registers, so that neither the row nor the norm's weights are read twice.
template <typename T>
class OneNormedRow {
 public:
  // Asks for the weights; if not, there is no such row.
  __device__ OneNormedRow(const SkinnyArguments& a, bool asks)
      : weight_(a.norm_weight), depth_(asks ? a.depth : 0), end_(a.row_tiles * kTileInputs) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) weights_[i] = four(weight_, i);
  }

  // Once x is there. Whatever the block's threads have copied, and x, is visible afterwards.
  // asked(): called by each warp when it has asked for what it needs of x.
  template <typename Asked>
  __device__ void stage(const SkinnyArguments& a, const NormedShared& at, char* shared,
                        const Asked& asked) const {
    const float* const from = static_cast<const float*>(a.x);
    float4 x[kHeld];
#pragma unroll
    for (int i = 0; i < kHeld; ++i) x[i] = four(from, i);
    asked();
    float* const squares = reinterpret_cast<float*>(shared + at.squares);  // [warp][lane]
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kHeld; ++i) sum = __fadd_rn(sum, sum_of_squares(x[i]));
    for (int i = kHeld; at_piece(i) < end_; ++i) sum = __fadd_rn(sum, sum_of_squares(four(from, i)));
    if (threadIdx.x < kSkinnyThreads) squares[threadIdx.x] = sum;
    wait_for_copies();
    __syncthreads();
    static_assert(kNormSums == kSegments);
    const float* const of_warps = squares + threadIdx.x % 32;
    sum = of_warps[0];
#pragma unroll
    for (int i = 1; i < kNormSums; ++i) sum = __fadd_rn(sum, of_warps[i * 32]);
    const float factor = norm_factor(sum, depth_, a.eps);
    uint2* const to = reinterpret_cast<uint2*>(shared + at.x);
    const auto write = [&](int i, const float4& of_x, const float4& weight) {
      if (const int k = at_piece(i); k < end_) to[k / 4] = narrowed<T>(normed_four(of_x, factor, weight));
    };
#pragma unroll
    for (int i = 0; i < kHeld; ++i) write(i, x[i], weights_[i]);
    for (int i = kHeld; at_piece(i) < end_; ++i) write(i, four(from, i), four(weight_, i));
    __syncthreads();
  }

 private:
  static constexpr int kHeld = 3;

  // Input of the lane in the warp's piece i; of warps beyond kSegments none.
  __device__ int at_piece(int i) const {
    const int thread = static_cast<int>(threadIdx.x);
    return thread < kSkinnyThreads ? (thread + i * kSkinnyThreads) * 4 : end_;
  }
  __device__ float4 four(const float* row, int i) const {
    const int k = at_piece(i);
    return k < depth_ ? *reinterpret_cast<const float4*>(row + k) : float4{};
  }

  const float* weight_;
  int depth_, end_;  // the row's, in shared memory
  float4 weights_[kHeld];
};

// Copies `chunks` chunks of each row of x, which is of 16 bits, from chunk `first` on, into shared memory,
// zeros after `depth`.  asked(): called by each thread when it has asked for its part.
template <typename Asked>
__device__ inline void stage_rows(const SkinnyArguments& a, const NormedShared& at, char* shared, int first,
                                  int chunks, const Asked& asked) {
  uint4* const to = reinterpret_cast<uint4*>(shared + at.x);
  const uint4* const from = static_cast<const uint4*>(a.x) + first;
  for (int i = static_cast<int>(threadIdx.x); i < a.rows * chunks; i += static_cast<int>(blockDim.x)) {
    const int row = i / chunks, chunk = i % chunks;
    uint4* const place = to + row * at.x_stride + chunk;
    if (first + chunk < a.depth / 8)
      copy_async<16>(place, from + row * (a.x_stride / 8) + chunk);
    else
      *place = uint4{};
  }
  asked();
  wait_for_copies();
  __syncthreads();
}

}  // namespace shoal::ops::cuda
