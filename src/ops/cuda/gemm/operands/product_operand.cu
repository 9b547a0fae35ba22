// x on its way into a product that does not read it as it is: normed, rounded, aligned, padded.
#include "ops/cuda/device/alignment.h"
#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/gemm/operands/products.h"
#include "ops/cuda/gemm/operands/settled.cuh"
#include "ops/cuda/ptx/async_copy.cuh"
#include "ops/cuda/rows/narrowed.cuh"
#include "ops/cuda/rows/row_norm.cuh"
#include "ops/cuda/rows/with_type.cuh"

namespace shoal::ops::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int64_t kSharedBytes = 48 << 10;  // of a block, without asking for more
constexpr int64_t kHeldDepth = 1024;        // what RowNorm keeps in registers
using DeepNorm = RowNormOf<24>;             // 2,560 inputs, and more: all are asked for at once

struct OperandArguments {
  const void* x;
  int64_t x_stride, rows;
  int depth;
  DType x_dtype;
  bool vectors;              // rows of an f32 x are 16-byte aligned, and depth is a multiple of 4
  const float* norm_weight;  // null: no norm
  float eps;
  bool shares_weight;  // it is read through shared memory, on its way before x is there
  void* y;             // [rows, padded]
  int padded;

  template <typename T>
  __device__ T* place(int64_t row, int k) const {
    return static_cast<T*>(y) + row * padded + k;
  }
};

// Zeros from `depth` on.
__device__ float4 within(const float4& v, int k, int depth) {
  return {v.x, k + 1 < depth ? v.y : 0.0f, k + 2 < depth ? v.z : 0.0f, k + 3 < depth ? v.w : 0.0f};
}

__device__ float load_any(const void* x, DType dtype, int64_t i) {
  if (dtype == DType::bf16) return __bfloat162float(static_cast<const __nv_bfloat16*>(x)[i]);
  return __half2float(static_cast<const __half*>(x)[i]);
}

// Fours of an f32 x that is only rounded, several a thread: all loads before the first store.
constexpr int kHeld = 4;

template <typename T>
__global__ void __launch_bounds__(kThreads) round_kernel(const OperandArguments a) {
  wait_for_inputs();
  const auto fours = static_cast<uint32_t>(a.padded / 4);
  const int64_t all = a.rows * fours, first = int64_t{blockIdx.x} * kHeld * kThreads + threadIdx.x;
  float4 held[kHeld];
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const int64_t four = first + i * kThreads, row = four / fours;
    if (four < all)
      held[i] = load_four(static_cast<const float*>(a.x) + row * a.x_stride,
                          static_cast<int>(four - row * fours) * 4, a.depth, a.vectors);
  }
#pragma unroll
  for (int i = 0; i < kHeld; ++i)
    if (first + i * kThreads < all) store_four(static_cast<T*>(a.y) + (first + i * kThreads) * 4, held[i]);
}

// Normed rows, or rows that are not f32: a warp per row. kUsual: normed, in vectors, its weight through
// shared memory; this kernel omits the instructions of the other cases.  Norm: by how much of a row fits into
// registers.
template <typename T, bool kUsual, typename Norm = RowNorm>
__global__ void __launch_bounds__(kThreads) operand_kernel(const OperandArguments a) {
  extern __shared__ float4 shared_weight[];
  const bool vectors = kUsual || a.vectors, shares_weight = kUsual || a.shares_weight;
  const float* weight = a.norm_weight;
  if (shares_weight) {
    for (int k = static_cast<int>(threadIdx.x); k < a.depth / 4; k += kThreads)
      copy_async<16>(&shared_weight[k], weight + k * 4);
    weight = reinterpret_cast<const float*>(shared_weight);
  }
  let_successor_start();  // the product
  wait_for_inputs();
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  const bool exists = row < a.rows;
  const float* const from = static_cast<const float*>(a.x) + row * a.x_stride;  // where x is f32
  Norm norm;
  if (exists && weight) norm.measure(from, a.depth, a.eps, vectors);
  if (shares_weight) {
    wait_for_copies();
    __syncthreads();
  }
  if (!exists) return;
  if (kUsual || weight)
    norm.write(
        from, a.depth, vectors, [&](int k) { return load_four(weight, k, a.depth, vectors); },
        [&](int k, const float4& y) { store_four(a.place<T>(row, k), within(y, k, a.depth)); });
  else
    for (int k = lane; k < a.depth; k += 32)
      *a.place<T>(row, k) = narrowed_value<T>(load_any(a.x, a.x_dtype, row * a.x_stride + k));
  // The elements between the last input, or the last four, and the end.
  for (int k = (weight ? (a.depth + 3) / 4 * 4 : a.depth) + lane; k < a.padded; k += 32)
    *a.place<T>(row, k) = narrowed_value<T>(0.0f);
}

}  // namespace

bool is_product_operand(TensorView x, DType dtype) {
  if (x.dtype() != dtype) return false;
  // 16-bit kernels load whole vectors of 16 bytes.
  return dtype == DType::f32 || (is_aligned(x.data()) && x.stride(0) % 8 == 0 && x.dim(1) % 8 == 0);
}

TensorView product_operand(Context& ctx, TensorView x, DType dtype, const RmsNorm* norm, TensorView sums) {
  const int64_t rows = x.dim(0), depth = x.dim(1), padded = (depth + 7) / 8 * 8;
  const TensorView y = ctx.workspace->alloc(dtype, {rows, padded});
  CHECK(!norm || x.dtype() == DType::f32, "a norm of ", name_of(x.dtype()));
  if (!sums.empty()) {
    norm_settled(ctx, x, sums, *norm, y);
    return y;
  }
  const float* const weight = norm ? norm->weight.as<float>() : nullptr;
  const bool vectors = is_aligned(x.data()) && x.stride(0) % 4 == 0 && depth % 4 == 0 && is_aligned(weight);
  const bool shares_weight = norm && vectors && depth * 4 <= kSharedBytes;
  const OperandArguments arguments{.x = x.data(),
                                   .x_stride = x.stride(0),
                                   .rows = rows,
                                   .depth = static_cast<int>(depth),
                                   .x_dtype = x.dtype(),
                                   .vectors = vectors,
                                   .norm_weight = weight,
                                   .eps = norm ? norm->eps : 0.0f,
                                   .shares_weight = shares_weight,
                                   .y = y.data(),
                                   .padded = static_cast<int>(padded)};
  if (!norm && x.dtype() == DType::f32) {
    const int64_t fours = rows * padded / 4;
    const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks_for(fours, kHeld * kThreads))),
                    .threads = dim3(kThreads)};
    with_float_type(dtype, [&](auto type) {
      launch(ctx, "rounding of an operand", grid, round_kernel<decltype(type)>, arguments);
    });
    return y;
  }
  const Grid grid{.blocks = dim3(static_cast<unsigned>(blocks_for(rows, kWarps))),
                  .threads = dim3(kThreads),
                  .shared_bytes = shares_weight ? static_cast<size_t>(depth * 4) : 0};
  with_float_type(dtype, [&](auto type) {
    using T = decltype(type);
    launch(ctx, "operand of a product", grid,
           !shares_weight       ? operand_kernel<T, false>
           : depth > kHeldDepth ? operand_kernel<T, true, DeepNorm>
                                : operand_kernel<T, true>,
           arguments);
  });
  return y;
}

}  // namespace shoal::ops::cuda
