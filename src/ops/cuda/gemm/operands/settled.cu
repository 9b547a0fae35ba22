// A residual stream whose sums wait (residual.h): the norm that reads the rows next adds them up on its way.
#include <algorithm>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/device/machine.h"
#include "ops/cuda/gemm/operands/products.h"
#include "ops/cuda/gemm/operands/settled.cuh"
#include "ops/cuda/ptx/async_copy.cuh"
#include "ops/cuda/ptx/mbarrier.cuh"
#include "ops/cuda/ptx/shared_address.cuh"
#include "ops/cuda/rows/narrowed.cuh"
#include "ops/cuda/rows/row_norm.cuh"
#include "ops/cuda/rows/with_type.cuh"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kThreads = 128, kDeepThreads = 320;  // of a block; where a row has more than kDeepInputs
constexpr int64_t kDeepInputs = 2048;
static_assert(kPendingSegments == kSegments);

struct SettleArguments {
  float* x;
  int64_t x_stride, rows;
  int depth;          // a multiple of 4
  const float* sums;  // [kSegments, rows, depth]
  const float* norm_weight;
  float eps;
  void* y;  // [rows, depth]
};

__device__ float4 plus(const float4& a, const float4& b) {
  return {__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z), __fadd_rn(a.w, b.w)};
}

// x += sums, for the inputs [begin, end) of a row; calls what(k, the four results from k on). kTogether:
// fours that a thread asks for at the same time.
template <int kThreads, int kTogether, typename What>
__device__ inline void settle_row(const SettleArguments& a, int64_t row, int begin, int end, What&& what) {
  float* const x = a.x + row * a.x_stride;
  const float* const sums = a.sums + row * a.depth;
  for (int first = begin + static_cast<int>(threadIdx.x) * 4; first < end;
       first += kTogether * kThreads * 4) {
    float4 before[kTogether], of_segment[kTogether][kSegments];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int k = first + i * kThreads * 4;
      if (k >= end) break;
      before[i] = *reinterpret_cast<const float4*>(x + k);
#pragma unroll
      for (int s = 0; s < kSegments; ++s)
        of_segment[i][s] = *reinterpret_cast<const float4*>(sums + s * a.rows * a.depth + k);
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int k = first + i * kThreads * 4;
      if (k >= end) break;
      float4 total{};
#pragma unroll
      for (const float4& sum : of_segment[i]) total = plus(total, sum);
      total = plus(before[i], total);
      *reinterpret_cast<float4*>(x + k) = total;
      what(k, total);
    }
  }
}

__global__ void __launch_bounds__(kThreads) settle_kernel(const SettleArguments a) {
  wait_for_inputs();
  settle_row<kThreads, 2>(a, blockIdx.x, 0, a.depth, [](int, const float4&) {});
}

// Also makes the operand of the next product. The row passes through shared memory to the warps, each of
// which computes the moments of the whole row, as RowNorm does. The blocks of a cluster
// settle a part of it each.
template <typename T, int kThreads, int kBlocks>
__global__ void __launch_bounds__(kThreads) settled_operand_kernel(const SettleArguments a) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ float4 shared_fours[];
  float4* const weights = shared_fours + a.depth / 4;
  const int row = static_cast<int>(blockIdx.x) / kBlocks, part = a.depth / kBlocks,
            begin = kBlocks > 1 ? static_cast<int>(rank_in_cluster()) * part : 0, end = begin + part;
  for (int k = begin / 4 + static_cast<int>(threadIdx.x); k < end / 4; k += kThreads)
    copy_async<16>(&weights[k], a.norm_weight + k * 4);
  let_successor_start();  // the product
  if constexpr (kBlocks > 1) {
    __syncwarp();
    leave_cluster();  // all have begun
  }
  constexpr int kTogether = 2 / kBlocks;
  const auto shared = shared_address(shared_fours);
  wait_for_inputs();
  settle_row<kThreads, kTogether>(a, row, begin, end, [&](int k, const float4& four) {
    if constexpr (kBlocks == 1) {
      shared_fours[k / 4] = four;
    } else {
#pragma unroll
      for (uint32_t rank = 0; rank < kBlocks; ++rank)
        store_to_cluster(address_in(shared + static_cast<uint32_t>(k * 4), rank), four);
    }
  });
  wait_for_copies();
  if constexpr (kBlocks > 1) {
    __syncwarp();
    synchronize_cluster();
  } else {
    __syncthreads();
  }
  RowNorm norm;
  norm.measure(reinterpret_cast<const float*>(shared_fours), a.depth, a.eps, true);
  for (int k = begin / 4 + static_cast<int>(threadIdx.x); k < end / 4; k += kThreads)
    store_four(static_cast<T*>(a.y) + int64_t{row} * a.depth + k * 4,
               normed_four(shared_fours[k], norm.factor(), weights[k]));
#endif
}

SettleArguments arguments_of(TensorView x, TensorView sums) {
  return {.x = x.as<float>(),
          .x_stride = x.stride(0),
          .rows = x.dim(0),
          .depth = static_cast<int>(x.dim(1)),
          .sums = sums.as<float>()};
}

Grid grid_of(TensorView x, int threads, int64_t shared_bytes, unsigned cluster = 1) {
  return {.blocks = dim3(static_cast<unsigned>(x.dim(0)) * cluster),
          .threads = dim3(static_cast<unsigned>(threads)),
          .shared_bytes = static_cast<size_t>(shared_bytes),
          .cluster = cluster};
}

}  // namespace

void norm_settled(Context& ctx, TensorView x, TensorView sums, const RmsNorm& norm, TensorView y) {
  CHECK(reinterpret_cast<uintptr_t>(norm.weight.data()) % 16 == 0,
        "norm weight of a residual stream is not aligned");
  SettleArguments arguments = arguments_of(x, sums);
  arguments.norm_weight = norm.weight.as<float>();
  arguments.eps = norm.eps;
  arguments.y = y.data();
  const bool deep = x.dim(1) > kDeepInputs;
  // Two blocks a row where there are multiprocessors for them (a layer of S2-Pro of 64 rows, an H200: 71.9 ->
  // 70.1 us; four are slower than one). A row of S1-mini is too short (24.1 -> 24.8).
  const bool halves = deep && x.dim(1) % 8 == 0 && 2 * x.dim(0) <= machine_of(ctx).multiprocessors;
  launch(ctx, "operand of a product, settled",
         grid_of(x, deep ? kDeepThreads : kThreads, settled_bytes(x.dim(1)), halves ? 2 : 1),
         with_operand_type(y.dtype(),
                           [&](auto type) {
                             using T = decltype(type);
                             return halves ? settled_operand_kernel<T, kDeepThreads, 2>
                                    : deep ? settled_operand_kernel<T, kDeepThreads, 1>
                                           : settled_operand_kernel<T, kThreads, 1>;
                           }),
         arguments);
}

void add_sums(Context& ctx, TensorView sums, TensorView x) {
  launch(ctx, "sums of a product", grid_of(x, kThreads, 0), settle_kernel, arguments_of(x, sums));
}

}  // namespace shoal::ops::cuda
