// Turns the logits of a frame into its token and codes (spec dual_ar 5.3, 6).
#pragma once

#include <cstdint>
#include <span>

#include "models/dual_ar/config.h"
#include "models/dual_ar/generation.h"
#include "ops/context.h"
#include "tensor/tensor.h"

namespace shoal::dual_ar {

// Which token each row of the head stands for: itself, or, in a semantic head, semantic_begin + row and at
// last <|im_end|>.
class HeadTokens {
 public:
  HeadTokens(const Config& config, bool semantic);

  int64_t rows() const { return rows_; }
  int32_t token(int32_t row) const;
  int32_t row(int32_t token) const;  // -1 when the head has no row for it
  bool is_semantic(int32_t token) const { return token >= semantic_begin_ && token <= semantic_end_; }
  int32_t semantic_begin() const { return semantic_begin_; }
  int32_t semantic_end() const { return semantic_end_; }
  int32_t im_end() const { return im_end_; }

 private:
  int32_t semantic_begin_, semantic_end_, im_end_;
  bool semantic_;
  int64_t rows_;
};

// Draws for a batch of rows, each as its request says. The noise of a draw is keyed by (seed, frame, number
// of the draw within the frame, row of the logits).
class FrameSampler {
 public:
  FrameSampler(const Config& config, bool semantic_head);

  // logits: f32 [rows, head rows]. Writes the first two values of every frame: the token and its code, which
  // is 0 for tokens that are not semantic. frames: [rows, 1 + num_codebooks].
  void draw_tokens(ops::Context& ctx, TensorView logits, std::span<const FrameRequest> requests,
                   std::span<int32_t> frames) const;

  // logits: f32 [rows, residual_codes] of codebook k, 1 <= k < num_codebooks. Writes value 1 + k of every
  // frame.
  void draw_codes(ops::Context& ctx, TensorView logits, std::span<const FrameRequest> requests,
                  int64_t codebook, std::span<int32_t> frames) const;

  // Code of codebook 0 for a token (spec dual_ar 5.3 step 1).
  int32_t code_of(int32_t token) const;
  const HeadTokens& head() const { return head_; }

 private:
  HeadTokens head_;
  int64_t columns_;        // 1 + num_codebooks
  int64_t codebook_size_;  // of codebook 0
};

}  // namespace shoal::dual_ar
