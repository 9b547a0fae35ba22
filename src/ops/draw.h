// Sampling the frames of a batch: sample (sample.h) with its settings in the device's memory, so that nothing
// returns to the host between the draws of a frame.
#pragma once

#include <cstdint>

#include "ops/context.h"

namespace shoal::ops {

// The largest numbers of penalised ids in one draw, and of recent tokens that are sampled again.
constexpr int64_t kMostPenalised = 32, kMostRecent = 16;

// The settings for sampling a token again, and the draw number that separates its noise from every
// codebook's.
constexpr float kRedrawTemperature = 1.0f, kRedrawTopP = 0.9f;
constexpr uint32_t kRedrawNumber = 1000;

// The sampling settings of one row. Ids out of range in the lists are ignored.
struct DrawRow {
  uint64_t seed = 0;
  uint32_t frame = 0;
  int32_t top_k = 0;
  float temperature = 0.8f, top_p = 0.8f, repetition_penalty = 1.0f;
  int32_t restricted = 0;        // tokens: only the semantic ones and the end may be drawn
  int32_t penalised_tokens = 0;  // how many of the lists below count
  int32_t penalised_codes = 0;   // for each codebook
  int32_t recent = 0;
  int32_t unused = 0;
  int32_t tokens[kMostPenalised] = {};  // token ids
  // A semantic token among these is sampled again (dual_ar/MODEL.md 5).
  int32_t recent_tokens[kMostRecent] = {};
};

// In the device's memory, and older than the logits: a GPU reads it while they are being computed (so a
// kernel that writes it must not be the last one before a draw).
struct DrawTable {
  TensorView rows;   // u8 [rows, sizeof(DrawRow)]
  TensorView codes;  // i32 [rows, codebooks, most]: codes to penalise, by codebook
};

// The token of each row of the head: the row itself, or, in a semantic head, semantic_begin + row and im_end
// for the last one. semantic_end is inclusive. Code c of codebook 0 is token semantic_begin + c.
struct TokenHead {
  int32_t semantic_begin = 0, semantic_end = 0, im_end = 0;
  bool semantic = false;
  int32_t codebook_size = 0;  // of codebook 0
};

// logits: f32 [rows, head rows]. Writes the first two values of every frame: the token, and its code, clamped
// to the codebook (dual_ar/MODEL.md 4). frames: i32 [rows, 1 + codebooks], dense. The noise is keyed by
// (seed, frame, number of the draw, row of the logits): number 0, and kRedrawNumber for a token sampled
// again. Errors as sample on the CPU; on a GPU a row without candidates (logits that are NaN) gets token -1.
void draw_tokens(Context& ctx, TensorView logits, const DrawTable& table, const TokenHead& head,
                 TensorView frames);

// logits: f32 [rows, codes] of codebook k >= 1. Writes value 1 + k of every frame. Errors as above: code -1.
void draw_codes(Context& ctx, TensorView logits, const DrawTable& table, int64_t codebook, TensorView frames);

}  // namespace shoal::ops
