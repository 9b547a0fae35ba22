#include "ops/embedding.h"

#include "ops/cpu_backend.h"
#include "ops/cuda_backend.h"

namespace shoal::ops {
namespace {

void check_table(const char* op, TensorView table, TensorView y) {
  const bool is_float =
      table.dtype() == DType::f32 || table.dtype() == DType::bf16 || table.dtype() == DType::f16;
  CHECK(table.rank() == 2 && is_float, op, ": table is ", name_of(table.dtype()), " ", table.shape(),
        ", expected F32, BF16 or F16 [entries, dim]");
  CHECK(y.rank() == 2 && y.dtype() == DType::f32 && y.dim(1) == table.dim(1), op, ": y is ",
        name_of(y.dtype()), " ", y.shape(), ", expected F32 [rows, ", table.dim(1), "]");
}

void check_columns(const ColumnEmbedding& e, TensorView columns, TensorView y) {
  check_table("embed_columns", e.text, y);
  check_table("embed_columns", e.codebooks, y);
  CHECK(e.text.dtype() == e.codebooks.dtype(), "embed_columns: text is ", name_of(e.text.dtype()),
        ", codebooks are ", name_of(e.codebooks.dtype()));
  CHECK(e.num_codebooks >= 1 && e.codebooks.dim(0) == e.num_codebooks * e.codebook_size,
        "embed_columns: codebooks are ", e.codebooks.shape(), " for ", e.num_codebooks, " x ",
        e.codebook_size);
  CHECK(columns.dtype() == DType::i32 && columns.shape() == (Shape{y.dim(0), 1 + e.num_codebooks}) &&
            columns.is_contiguous(),
        "embed_columns: columns are ", name_of(columns.dtype()), " ", columns.shape(),
        ", expected dense I32 [", y.dim(0), ", ", 1 + e.num_codebooks, "]");
}

}  // namespace

void gather_rows(Context& ctx, TensorView table, TensorView ids, TensorView y) {
  check_table("gather_rows", table, y);
  const bool a_column = ids.rank() == 1 || (ids.rank() == 2 && ids.dim(1) >= 1);
  CHECK(a_column && ids.dtype() == DType::i32 && ids.dim(0) == y.dim(0), "gather_rows: ids are ",
        name_of(ids.dtype()), " ", ids.shape(), " for y ", y.shape());
  if (y.dim(0) == 0) return;
  if (on_cpu(ctx)) return cpu::gather_rows(ctx, table, ids, y);
  cuda::gather_rows(ctx, table, ids, y);
}

void gather_sum(Context& ctx, TensorView table, TensorView ids, TensorView y) {
  check_table("gather_sum", table, y);
  CHECK(ids.rank() == 2 && ids.dtype() == DType::i32 && ids.dim(0) == y.dim(0) && ids.dim(1) >= 1,
        "gather_sum: ids are ", name_of(ids.dtype()), " ", ids.shape(), " for y ", y.shape());
  if (y.dim(0) == 0) return;
  if (on_cpu(ctx)) return cpu::gather_sum(ctx, table, ids, y);
  cuda::gather_sum(ctx, table, ids, y);
}

void embed_columns(Context& ctx, const ColumnEmbedding& embedding, TensorView columns, TensorView y) {
  check_columns(embedding, columns, y);
  if (y.dim(0) == 0) return;
  if (on_cpu(ctx)) return cpu::embed_columns(ctx, embedding, columns, y);
  cuda::embed_columns(ctx, embedding, columns, y);
}

}  // namespace shoal::ops
