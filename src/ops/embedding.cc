#include "ops/embedding.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/cpu/vector.h"
#include "ops/cpu/vector_kernels.h"
#include "ops/cuda_backend.h"

namespace shoal::ops {
namespace {

void check_table(const char* op, TensorView table, TensorView y) {
  CHECK(table.rank() == 2 && (table.dtype() == DType::f32 || table.dtype() == DType::bf16), op, ": table is ",
        name_of(table.dtype()), " ", table.shape(), ", expected F32 or BF16 [entries, dim]");
  CHECK(y.rank() == 2 && y.dtype() == DType::f32 && y.dim(1) == table.dim(1), op, ": y is ",
        name_of(y.dtype()), " ", y.shape(), ", expected F32 [rows, ", table.dim(1), "]");
}

void check_id(const char* op, int64_t id, int64_t entries) {
  if (id < 0 || id >= entries)
    fail(ErrorCode::invalid_argument, op, ": id ", id, " is outside the table of ", entries, " entries");
}

void check_ids(const char* op, std::span<const int32_t> ids, int64_t entries) {
  for (const int32_t id : ids) check_id(op, id, entries);
}

// y = table[id], or y += table[id] by way of `wide`, a row of scratch for bf16 tables.
class RowReader {
 public:
  RowReader(Context& ctx, TensorView table)
      : kernels_(vector_kernels()),
        table_(table),
        wide_(ctx.workspace->alloc(DType::f32, {ctx.team->size(), table.dim(1)})) {}

  void copy(int64_t id, float* y) const {
    if (table_.dtype() == DType::bf16)
      kernels_.widen_bf16(table_.row<Bf16>(id), y, table_.dim(1));
    else
      std::memcpy(y, table_.row<float>(id), static_cast<size_t>(table_.dim(1)) * sizeof(float));
  }
  void add(int64_t id, int worker, float* y) const {
    if (table_.dtype() == DType::f32) return kernels_.add(table_.row<float>(id), y, table_.dim(1));
    float* wide = wide_.row<float>(worker);
    copy(id, wide);
    kernels_.add(wide, y, table_.dim(1));
  }

 private:
  const VectorKernels& kernels_;
  TensorView table_;
  TensorView wide_;  // [workers, dim]
};

int64_t codebook_row(const ColumnEmbedding& e, int64_t codebook, int32_t code) {
  return codebook * e.codebook_size + code;
}

bool carries_codes(const ColumnEmbedding& e, int32_t token) {
  return e.semantic_begin <= token && token <= e.semantic_end;
}

void check_columns(const ColumnEmbedding& e, std::span<const int32_t> columns, TensorView y) {
  check_table("embed_columns", e.text, y);
  check_table("embed_columns", e.codebooks, y);
  CHECK(e.text.dtype() == e.codebooks.dtype(), "embed_columns: text is ", name_of(e.text.dtype()),
        ", codebooks are ", name_of(e.codebooks.dtype()));
  CHECK(e.num_codebooks >= 1 && e.codebooks.dim(0) == e.num_codebooks * e.codebook_size,
        "embed_columns: codebooks are ", e.codebooks.shape(), " for ", e.num_codebooks, " x ",
        e.codebook_size);
  const int64_t width = 1 + e.num_codebooks;
  CHECK(static_cast<int64_t>(columns.size()) == y.dim(0) * width, "embed_columns: ", columns.size(),
        " ids for ", y.dim(0), " columns of ", width);
  for (int64_t row = 0; row < y.dim(0); ++row) {
    const std::span<const int32_t> column =
        columns.subspan(static_cast<size_t>(row * width), static_cast<size_t>(width));
    check_id("embed_columns: text", column[0], e.text.dim(0));
    if (carries_codes(e, column[0])) check_ids("embed_columns: codebook", column.subspan(1), e.codebook_size);
  }
}

}  // namespace

void gather_rows(Context& ctx, TensorView table, std::span<const int32_t> ids, TensorView y) {
  check_table("gather_rows", table, y);
  CHECK(static_cast<int64_t>(ids.size()) == y.dim(0), "gather_rows: ", ids.size(), " ids for y ", y.shape());
  check_ids("gather_rows", ids, table.dim(0));
  if (y.dim(0) == 0) return;
  if (ctx.device.kind == DeviceKind::cuda) return cuda::gather_rows(ctx, table, ids, y);
  const Workspace::Scope scope(*ctx.workspace);
  const RowReader reader(ctx, table);
  ctx.team->parallel_for(y.dim(0), cpu::rows_per_task(y.dim(1)), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) reader.copy(ids[static_cast<size_t>(row)], y.row<float>(row));
  });
}

void gather_sum(Context& ctx, TensorView table, std::span<const int32_t> ids, int64_t per_row, TensorView y) {
  check_table("gather_sum", table, y);
  CHECK(per_row >= 1 && static_cast<int64_t>(ids.size()) == y.dim(0) * per_row, "gather_sum: ", ids.size(),
        " ids, ", per_row, " per row, for y ", y.shape());
  check_ids("gather_sum", ids, table.dim(0));
  if (y.dim(0) == 0) return;
  if (ctx.device.kind == DeviceKind::cuda) return cuda::gather_sum(ctx, table, ids, per_row, y);
  const Workspace::Scope scope(*ctx.workspace);
  const RowReader reader(ctx, table);
  const int64_t grain = cpu::rows_per_task(y.dim(1) * per_row);
  ctx.team->parallel_for(y.dim(0), grain, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t row = begin; row < end; ++row) {
      const int32_t* id = ids.data() + row * per_row;
      reader.copy(id[0], y.row<float>(row));
      for (int64_t i = 1; i < per_row; ++i) reader.add(id[i], worker, y.row<float>(row));
    }
  });
}

void embed_columns(Context& ctx, const ColumnEmbedding& embedding, std::span<const int32_t> columns,
                   TensorView y) {
  check_columns(embedding, columns, y);
  if (y.dim(0) == 0) return;
  if (ctx.device.kind == DeviceKind::cuda) return cuda::embed_columns(ctx, embedding, columns, y);
  const Workspace::Scope scope(*ctx.workspace);
  const RowReader text(ctx, embedding.text), codes(ctx, embedding.codebooks);
  const TensorView sums = ctx.workspace->alloc(DType::f32, {ctx.team->size(), y.dim(1)});
  const float divisor = std::sqrt(static_cast<float>(embedding.num_codebooks + 1));
  const VectorKernels& kernels = vector_kernels();
  const int64_t grain = cpu::rows_per_task(y.dim(1) * (1 + embedding.num_codebooks));
  ctx.team->parallel_for(y.dim(0), grain, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t row = begin; row < end; ++row) {
      const int32_t* column = columns.data() + row * (1 + embedding.num_codebooks);
      float* out = y.row<float>(row);
      text.copy(column[0], out);
      if (!carries_codes(embedding, column[0])) continue;
      float* sum = sums.row<float>(worker);  // the codebooks are summed first, then added to the token's row
      codes.copy(codebook_row(embedding, 0, column[1]), sum);
      for (int64_t i = 1; i < embedding.num_codebooks; ++i)
        codes.add(codebook_row(embedding, i, column[1 + i]), worker, sum);
      kernels.add(sum, out, y.dim(1));
      if (embedding.scale) kernels.divide(divisor, out, y.dim(1));
    }
  });
}

}  // namespace shoal::ops
