#include <cmath>
#include <cstring>

#include "ops/cpu/kernels/vector_kernels.h"
#include "ops/cpu/rows/tasks.h"
#include "ops/cpu_backend.h"

namespace shoal::ops::cpu {
namespace {

void check_id(const char* op, int64_t id, int64_t entries) {
  if (id < 0 || id >= entries)
    fail(ErrorCode::invalid_argument, op, ": id ", id, " is outside the table of ", entries, " entries");
}

// The first `count` ids of every row.
void check_ids(const char* op, TensorView ids, int64_t count, int64_t entries) {
  if (ids.is_sized_only()) return;
  for (int64_t row = 0; row < ids.dim(0); ++row)
    for (int64_t i = 0; i < count; ++i) check_id(op, ids.row<int32_t>(row)[i], entries);
}

// y = table[id], or y += table[id] by way of `wide`, a row of scratch for 16-bit tables.
class RowReader {
 public:
  RowReader(Context& ctx, TensorView table)
      : kernels_(vector_kernels()),
        table_(table),
        wide_(ctx.workspace->alloc(DType::f32, {ctx.team->size(), table.dim(1)})) {}

  void copy(int64_t id, float* y) const {
    const int64_t dim = table_.dim(1);
    if (table_.dtype() == DType::f32)
      std::memcpy(y, table_.row<float>(id), static_cast<size_t>(dim) * sizeof(float));
    else if (table_.dtype() == DType::bf16)
      kernels_.widen_bf16(table_.row<Bf16>(id), y, dim);
    else
      for (int64_t i = 0; i < dim; ++i)
        y[i] = load_float(table_.data(), DType::f16, id * table_.stride(0) + i);
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

void check_column_ids(const ColumnEmbedding& e, TensorView columns) {
  for (int64_t row = 0; row < columns.dim(0); ++row) {
    const int32_t* column = columns.row<int32_t>(row);
    check_id("embed_columns: text", column[0], e.text.dim(0));
    if (!carries_codes(e, column[0])) continue;
    for (int64_t i = 1; i <= e.num_codebooks; ++i)
      check_id("embed_columns: codebook", column[i], e.codebook_size);
  }
}

}  // namespace

void gather_rows(Context& ctx, TensorView table, TensorView ids, TensorView y) {
  check_ids("gather_rows", ids, 1, table.dim(0));
  const Workspace::Scope scope(*ctx.workspace);
  const RowReader reader(ctx, table);
  ctx.team->parallel_for(y.dim(0), rows_per_task(y.dim(1)), [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) reader.copy(*ids.row<int32_t>(row), y.row<float>(row));
  });
}

void gather_sum(Context& ctx, TensorView table, TensorView ids, TensorView y) {
  const int64_t per_row = ids.dim(1);
  check_ids("gather_sum", ids, per_row, table.dim(0));
  const Workspace::Scope scope(*ctx.workspace);
  const RowReader reader(ctx, table);
  const int64_t grain = rows_per_task(y.dim(1) * per_row);
  ctx.team->parallel_for(y.dim(0), grain, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t row = begin; row < end; ++row) {
      const int32_t* id = ids.row<int32_t>(row);
      reader.copy(id[0], y.row<float>(row));
      for (int64_t i = 1; i < per_row; ++i) reader.add(id[i], worker, y.row<float>(row));
    }
  });
}

void embed_columns(Context& ctx, const ColumnEmbedding& embedding, TensorView columns, TensorView y) {
  check_column_ids(embedding, columns);
  const Workspace::Scope scope(*ctx.workspace);
  const RowReader text(ctx, embedding.text), codes(ctx, embedding.codebooks);
  const TensorView sums = ctx.workspace->alloc(DType::f32, {ctx.team->size(), y.dim(1)});
  const float divisor = std::sqrt(static_cast<float>(embedding.num_codebooks + 1));
  const VectorKernels& kernels = vector_kernels();
  const int64_t grain = rows_per_task(y.dim(1) * (1 + embedding.num_codebooks));
  ctx.team->parallel_for(y.dim(0), grain, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t row = begin; row < end; ++row) {
      const int32_t* column = columns.row<int32_t>(row);
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

}  // namespace shoal::ops::cpu
