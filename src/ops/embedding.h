// Table look-ups.
#pragma once

#include "ops/context.h"

namespace shoal::ops {

// Ids are i32 in the device's memory. An id outside the table is an error on the CPU; a GPU reads the nearest
// row, so ids from outside are checked before they are uploaded.

// y[row] = table[ids[row]].   ids: [rows], or [rows, n] of which the first column counts (a strided column).
// table: f32, bf16 or f16 [entries, dim], y: f32 [rows, dim]; rows of both may be strided.
void gather_rows(Context& ctx, TensorView table, TensorView ids, TensorView y);

// y[row] = sum over i of table[ids[row][i]], in order of i.   ids: [rows, per_row].   The codec's projected
// code tables (dac/MODEL.md, Decoding 2).
void gather_sum(Context& ctx, TensorView table, TensorView ids, TensorView y);

// The DualAR input embedding (dual_ar/MODEL.md 1).
struct ColumnEmbedding {
  TensorView text;       // f32, bf16 or f16 [vocab, dim]
  TensorView codebooks;  // same dtype [num_codebooks * codebook_size, dim]
  int64_t codebook_size = 0;
  int64_t num_codebooks = 0;
  int32_t semantic_begin = 0, semantic_end = 0;  // inclusive range of ids whose columns carry codes
  bool scale = false;                            // divide those columns by sqrt(num_codebooks + 1)
};

// columns: [rows, 1 + num_codebooks] ids (token, then codes), dense; y: f32 [rows, dim].
void embed_columns(Context& ctx, const ColumnEmbedding& embedding, TensorView columns, TensorView y);

}  // namespace shoal::ops
