#include "ops/draw.h"

#include "ops/cpu_backend.h"
#include "ops/cuda_backend.h"

namespace shoal::ops {
namespace {

void check(const char* op, TensorView logits, const DrawTable& table, TensorView frames) {
  CHECK(logits.rank() == 2 && logits.dtype() == DType::f32, op, ": logits are ", name_of(logits.dtype()), " ",
        logits.shape(), ", expected F32 [rows, vocab]");
  const int64_t rows = logits.dim(0);
  CHECK(frames.rank() == 2 && frames.dtype() == DType::i32 && frames.is_contiguous() &&
            frames.dim(0) == rows && frames.dim(1) >= 2,
        op, ": frames are ", name_of(frames.dtype()), " ", frames.shape(), ", expected dense I32 [", rows,
        ", 1 + codebooks]");
  constexpr auto kRowBytes = static_cast<int64_t>(sizeof(DrawRow));
  CHECK(table.rows.dtype() == DType::u8 && table.rows.shape() == (Shape{rows, kRowBytes}) &&
            table.rows.is_contiguous(),
        op, ": settings are ", name_of(table.rows.dtype()), " ", table.rows.shape(), ", expected dense U8 [",
        rows, ", ", kRowBytes, "]");
  CHECK(table.codes.empty() ||
            (table.codes.rank() == 3 && table.codes.dtype() == DType::i32 && table.codes.is_contiguous() &&
             table.codes.dim(0) == rows && table.codes.dim(1) == frames.dim(1) - 1),
        op, ": codes are ", name_of(table.codes.dtype()), " ", table.codes.shape(), ", expected dense I32 [",
        rows, ", ", frames.dim(1) - 1, ", most]");
}

}  // namespace

void draw_tokens(Context& ctx, TensorView logits, const DrawTable& table, const TokenHead& head,
                 TensorView frames) {
  check("draw_tokens", logits, table, frames);
  CHECK(0 <= head.semantic_begin && head.semantic_begin <= head.semantic_end && head.codebook_size >= 1,
        "draw_tokens: semantic tokens ", head.semantic_begin, " to ", head.semantic_end, ", codebook of ",
        head.codebook_size);
  CHECK(!head.semantic || logits.dim(1) == int64_t{head.semantic_end} - head.semantic_begin + 2,
        "draw_tokens: ", logits.dim(1), " logits of semantic tokens ", head.semantic_begin, " to ",
        head.semantic_end, " and the end");
  if (logits.dim(0) == 0) return;
  if (on_cpu(ctx)) return cpu::draw_tokens(ctx, logits, table, head, frames);
  cuda::draw_tokens(ctx, logits, table, head, frames);
}

void draw_codes(Context& ctx, TensorView logits, const DrawTable& table, int64_t codebook,
                TensorView frames) {
  check("draw_codes", logits, table, frames);
  CHECK(1 <= codebook && codebook < frames.dim(1) - 1, "draw_codes: codebook ", codebook, " of ",
        frames.dim(1) - 1);
  if (logits.dim(0) == 0) return;
  if (on_cpu(ctx)) return cpu::draw_codes(ctx, logits, table, codebook, frames);
  cuda::draw_codes(ctx, logits, table, codebook, frames);
}

}  // namespace shoal::ops
