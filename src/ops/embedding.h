// Table look-ups.
#pragma once

#include "ops/context.h"

namespace shoal::ops {

// y[row] = table[ids[row]].   table: f32 or bf16 [entries, dim], y: f32 [rows, dim]; rows of both may be
// strided. An id outside the table is an error.
void gather_rows(Context& ctx, TensorView table, std::span<const int32_t> ids, TensorView y);

// y[row] = sum over i of table[ids[row * per_row + i]], in order of i.   The codec's projected code tables
// (spec dac 5.2).
void gather_sum(Context& ctx, TensorView table, std::span<const int32_t> ids, int64_t per_row, TensorView y);

// The DualAR input embedding (spec dual_ar 3).
struct ColumnEmbedding {
  TensorView text;       // f32 or bf16 [vocab, dim]
  TensorView codebooks;  // same dtype [num_codebooks * codebook_size, dim]
  int64_t codebook_size = 0;
  int64_t num_codebooks = 0;
  int32_t semantic_begin = 0, semantic_end = 0;  // inclusive range of ids whose columns carry codes
  bool scale = false;                            // divide those columns by sqrt(num_codebooks + 1)
};

// columns: [rows, 1 + num_codebooks] ids (token, then codes), row-major; y: f32 [rows, dim].
void embed_columns(Context& ctx, const ColumnEmbedding& embedding, std::span<const int32_t> columns,
                   TensorView y);

}  // namespace shoal::ops
