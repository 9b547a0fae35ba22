// Table look-ups. An id outside a table reads the nearest row: a draw without candidates gives -1.
#include <cmath>

#include "ops/cuda/device/launch.cuh"
#include "ops/cuda/rows/rows_access.cuh"
#include "ops/cuda/rows/with_type.cuh"
#include "ops/cuda_backend.h"

namespace shoal::ops::cuda {
namespace {

constexpr int kThreads = 128, kPerThread = 8;

// One block for each row and 1,024 columns of it.
Grid grid_of(TensorView y) {
  return {dim3(static_cast<unsigned>(y.dim(0)),
               static_cast<unsigned>(blocks_for(y.dim(1), kThreads * kPerThread))),
          dim3(kThreads)};
}

__device__ inline int first_column() {
  return static_cast<int>(blockIdx.y * kThreads + threadIdx.x) * kPerThread;
}

template <typename T>
struct Table {
  const T* rows;
  int64_t stride;
  int32_t entries;
  bool aligned;  // every row to 16 bytes

  __device__ bool has_vectors(int k, int dim) const { return aligned && k + 8 <= dim; }
  template <bool kVectors>
  __device__ StoredEight<T> at(int64_t id, int k, int dim) const {
    const int64_t nearest = min(max(id, int64_t{0}), int64_t{entries} - 1);
    return load_eight<kVectors>(rows + nearest * stride, k, dim);
  }
};

template <typename T>
Table<T> table_of(TensorView table) {
  return {.rows = static_cast<const T*>(table.data()),
          .stride = table.stride(0),
          .entries = static_cast<int32_t>(table.dim(0)),
          .aligned =
              reinterpret_cast<uintptr_t>(table.data()) % 16 == 0 && table.stride(0) * sizeof(T) % 16 == 0};
}

struct GatheredRows {
  const int32_t* ids;
  int64_t ids_stride;
  int per_row;
  float* y;
  int64_t y_stride;
  int dim;
};

// The sum of row(0) .. row(count - 1), in this order; eight loads are in flight at a time.
template <typename T, typename Row>
__device__ Eight sum_of(int count, Row row) {
  constexpr int kAtOnce = 8;
  Eight sum = row(0).widen();
  for (int begin = 1; begin < count; begin += kAtOnce) {
    StoredEight<T> rows[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (begin + i < count) rows[i] = row(begin + i);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (begin + i < count) sum.add(rows[i].widen());
  }
  return sum;
}

template <bool kVectors, typename T>
__device__ Eight gathered(const Table<T>& table, const int32_t* ids, int count, int k, int dim) {
  return sum_of<T>(count, [&](int i) { return table.template at<kVectors>(ids[i], k, dim); });
}

template <typename T>
__global__ void __launch_bounds__(kThreads) gather_sum_kernel(const Table<T> table, const GatheredRows a) {
  wait_for_inputs();
  const int64_t row = blockIdx.x;
  const int k = first_column();
  if (k >= a.dim) return;
  const int32_t* const ids = a.ids + row * a.ids_stride;
  const Eight sum = table.has_vectors(k, a.dim) ? gathered<true>(table, ids, a.per_row, k, a.dim)
                                                : gathered<false>(table, ids, a.per_row, k, a.dim);
  store_eight(a.y + row * a.y_stride, k, a.dim, sum);
}

void gather(Context& ctx, const char* name, TensorView table, TensorView ids, int64_t per_row, TensorView y) {
  const GatheredRows rows{.ids = ids.as<int32_t>(),
                          .ids_stride = ids.stride(0),
                          .per_row = static_cast<int>(per_row),
                          .y = y.as<float>(),
                          .y_stride = y.stride(0),
                          .dim = static_cast<int>(y.dim(1))};
  with_float_type(table.dtype(), [&](auto type) {
    using T = decltype(type);
    launch(ctx, name, grid_of(y), gather_sum_kernel<T>, table_of<T>(table), rows);
  });
}

struct EmbeddedColumns {
  const int32_t* columns;  // [rows, 1 + codebooks]
  int codebooks;
  int32_t codebook_size, semantic_begin, semantic_end;
  float divisor;  // 0: none
  float* y;
  int64_t y_stride;
  int dim;
};

// The codebooks are summed first, then added to the token's row: the CPU's order, and its bits.
template <bool kVectors, typename T>
__device__ Eight embedded(const Table<T>& text, const Table<T>& codes, const EmbeddedColumns& a,
                          const int32_t* column, int k) {
  const int32_t token = column[0];
  Eight y = text.template at<kVectors>(token, k, a.dim).widen();
  if (token < a.semantic_begin || token > a.semantic_end) return y;
  y.add(sum_of<T>(a.codebooks, [&](int i) {
    const int64_t code = min(max(column[1 + i], 0), a.codebook_size - 1);
    return codes.template at<kVectors>(int64_t{i} * a.codebook_size + code, k, a.dim);
  }));
  if (a.divisor != 0.0f) y.divide(a.divisor);
  return y;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    embed_columns_kernel(const Table<T> text, const Table<T> codes, const EmbeddedColumns a) {
  wait_for_inputs();
  const int64_t row = blockIdx.x;
  const int k = first_column();
  if (k >= a.dim) return;
  const int32_t* const column = a.columns + row * (1 + a.codebooks);
  const bool vectors = text.has_vectors(k, a.dim) && codes.has_vectors(k, a.dim);
  const Eight y =
      vectors ? embedded<true>(text, codes, a, column, k) : embedded<false>(text, codes, a, column, k);
  store_eight(a.y + row * a.y_stride, k, a.dim, y);
}

}  // namespace

void gather_rows(Context& ctx, TensorView table, TensorView ids, TensorView y) {
  gather(ctx, "gather_rows", table, ids, 1, y);
}

void gather_sum(Context& ctx, TensorView table, TensorView ids, TensorView y) {
  gather(ctx, "gather_sum", table, ids, ids.dim(1), y);
}

void embed_columns(Context& ctx, const ColumnEmbedding& embedding, TensorView columns, TensorView y) {
  const EmbeddedColumns rows{
      .columns = columns.as<int32_t>(),
      .codebooks = static_cast<int>(embedding.num_codebooks),
      .codebook_size = static_cast<int32_t>(embedding.codebook_size),
      .semantic_begin = embedding.semantic_begin,
      .semantic_end = embedding.semantic_end,
      .divisor = embedding.scale ? std::sqrt(static_cast<float>(embedding.num_codebooks + 1)) : 0.0f,
      .y = y.as<float>(),
      .y_stride = y.stride(0),
      .dim = static_cast<int>(y.dim(1))};
  with_float_type(embedding.text.dtype(), [&](auto type) {
    using T = decltype(type);
    launch(ctx, "embed_columns", grid_of(y), embed_columns_kernel<T>, table_of<T>(embedding.text),
           table_of<T>(embedding.codebooks), rows);
  });
}

}  // namespace shoal::ops::cuda
