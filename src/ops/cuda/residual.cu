// Products onto a residual stream whose sums wait (residual.h): the norm that reads the rows next adds them
// up on its way.
#include <algorithm>

#include "ops/cuda/async_copy.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/narrowed.cuh"
#include "ops/cuda/partial_product.h"
#include "ops/cuda/residual.cuh"
#include "ops/cuda/row_norm.cuh"
#include "ops/cuda/wide_product.h"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kThreads = 128;               // of a row
constexpr int kTogether = 2;                // fours of a row that a thread asks for at the same time
constexpr int64_t kSharedBytes = 48 << 10;  // of a block, without asking for more

constexpr int64_t kAheadBytes = int64_t{16} << 20;  // of keys and values, which have to find room in the L2

// Pages that the attention behind the product will read first, of each row's sequence.
struct PagesAhead {
  const char *k, *v;
  const int32_t *table, *positions;
  int per_sequence, page_size;
  uint32_t page_bytes;
  int pages;  // at most, of keys and of values; 0: none

  // Asks for them to be brought into the second-level cache. They are older than the rows (attention.h).
  __device__ void ask(int64_t row) const {
    const int page = static_cast<int>(threadIdx.x / 2);
    if (page >= pages || page * page_size >= positions[row]) return;
    const int64_t at = static_cast<int64_t>(table[row * per_sequence + page]) * page_bytes;
    prefetch_weights((threadIdx.x % 2 == 0 ? k : v) + at, page_bytes);
  }
};

struct SettleArguments {
  float* x;
  int64_t x_stride, rows;
  int depth;          // a multiple of 4
  const float* sums;  // [kSegments, rows, depth]
  const float* norm_weight;
  float eps;
  void* y;  // [rows, depth]
  PagesAhead ahead;
};

__device__ float4 plus(const float4& a, const float4& b) {
  return {__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z), __fadd_rn(a.w, b.w)};
}

// x += sums, of a row; what(k, the four from k on) of what becomes of it.
template <typename What>
__device__ inline void settle_row(const SettleArguments& a, int64_t row, What&& what) {
  float* const x = a.x + row * a.x_stride;
  const float* const sums = a.sums + row * a.depth;
  for (int first = static_cast<int>(threadIdx.x) * 4; first < a.depth; first += kTogether * kThreads * 4) {
    float4 before[kTogether], of_segment[kTogether][kSegments];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int k = first + i * kThreads * 4;
      if (k >= a.depth) break;
      before[i] = *reinterpret_cast<const float4*>(x + k);
#pragma unroll
      for (int s = 0; s < kSegments; ++s)
        of_segment[i][s] = *reinterpret_cast<const float4*>(sums + s * a.rows * a.depth + k);
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int k = first + i * kThreads * 4;
      if (k >= a.depth) break;
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
  settle_row(a, blockIdx.x, [](int, const float4&) {});
}

// And the operand of the product behind it. The row passes through shared memory to the warps, each of which
// measures all of it: RowNorm's order is that of one warp.
template <typename T>
__global__ void __launch_bounds__(kThreads) settled_operand_kernel(const SettleArguments a) {
  extern __shared__ float4 shared_fours[];
  float4* const weights = shared_fours + a.depth / 4;
  for (int k = static_cast<int>(threadIdx.x); k < a.depth / 4; k += kThreads)
    copy_async<16>(&weights[k], a.norm_weight + k * 4);
  a.ahead.ask(blockIdx.x);
  let_successor_start();  // the product
  wait_for_inputs();
  settle_row(a, blockIdx.x, [&](int k, const float4& four) { shared_fours[k / 4] = four; });
  wait_for_copies();
  __syncthreads();
  RowNorm norm;
  norm.measure(reinterpret_cast<const float*>(shared_fours), a.depth, a.eps, true);
  for (int k = static_cast<int>(threadIdx.x); k < a.depth / 4; k += kThreads)
    store_four(static_cast<T*>(a.y) + int64_t{blockIdx.x} * a.depth + k * 4,
               normed_four(shared_fours[k], norm.factor(), weights[k]));
}

PagesAhead pages_ahead(const ReadAhead& ahead, int64_t rows) {
  if (!ahead.plan || !ahead.plan->tables.single_rows) return {};
  const PlanTables& tables = ahead.plan->tables;
  const TensorView keys = ahead.cache->k;
  if (keys.bytes() <= kAheadBytes) return {};  // it is there
  const int64_t page_bytes = keys.bytes() / keys.dim(0);
  const int64_t pages = std::min(
      {kAheadBytes / (2 * page_bytes * rows), ahead.plan->pages_per_sequence, int64_t{kThreads / 2}});
  return {.k = static_cast<const char*>(keys.data()),
          .v = static_cast<const char*>(ahead.cache->v.data()),
          .table = tables.page_table.as<int32_t>(),
          .positions = tables.positions.as<int32_t>(),
          .per_sequence = static_cast<int>(ahead.plan->pages_per_sequence),
          .page_size = static_cast<int>(ahead.plan->page_size),
          .page_bytes = static_cast<uint32_t>(page_bytes),
          .pages = static_cast<int>(page_bytes % 16 == 0 ? pages : 0)};
}

SettleArguments arguments_of(TensorView x, TensorView sums) {
  return {.x = x.as<float>(),
          .x_stride = x.stride(0),
          .rows = x.dim(0),
          .depth = static_cast<int>(x.dim(1)),
          .sums = sums.as<float>()};
}

Grid grid_of(TensorView x, int64_t shared_bytes) {
  return {.blocks = dim3(static_cast<unsigned>(x.dim(0))),
          .threads = dim3(kThreads),
          .shared_bytes = static_cast<size_t>(shared_bytes)};
}

int64_t shared_bytes_of(int64_t depth) { return 2 * depth * size_of(DType::f32); }

}  // namespace

void norm_settled(Context& ctx, TensorView x, const WaitingSums& waiting, const RmsNorm& norm, TensorView y) {
  CHECK(reinterpret_cast<uintptr_t>(norm.weight.data()) % 16 == 0,
        "norm weight of a residual stream is not aligned");
  SettleArguments arguments = arguments_of(x, waiting.sums);
  arguments.ahead = pages_ahead(waiting.ahead, x.dim(0));
  arguments.norm_weight = norm.weight.as<float>();
  arguments.eps = norm.eps;
  arguments.y = y.data();
  launch(ctx, "operand of a product, settled", grid_of(x, shared_bytes_of(x.dim(1))),
         y.dtype() == DType::bf16 ? settled_operand_kernel<__nv_bfloat16> : settled_operand_kernel<__half>,
         arguments);
}

bool can_add_later(const Context& ctx) { return has_wide_kernels(ctx); }

bool linear_sums(Context& ctx, TensorView in, const PackedMatrix& weight, TensorView sums) {
  if (!weight.bias.empty() || !is_product_operand(in, weight.dtype) || size_of(weight.dtype) != 2)
    return false;
  if (shared_bytes_of(weight.outputs) > kSharedBytes) return false;
  return partial_product(ctx,
                         {.shape = shape_of(weight),
                          .dtype = weight.dtype,
                          .weight = weight.storage.view().data(),
                          .x = in.data(),
                          .x_stride = in.stride(0),
                          .rows = in.dim(0)},
                         sums);
}

void add_sums(Context& ctx, TensorView sums, TensorView x) {
  launch(ctx, "sums of a product", grid_of(x, 0), settle_kernel, arguments_of(x, sums));
}

}  // namespace shoal::ops::cuda
