// PLBERT: an ALBERT over phonemes, one layer used many times (spec kokoro 5.1, 5.2).
#pragma once

#include "models/kokoro/config.h"
#include "models/kokoro/loader.h"
#include "models/kokoro/rows.h"
#include "ops/packed_matrix.h"

namespace shoal::kokoro {

class PlBert {
 public:
  PlBert(Loader& loader, const Config& config);

  // Largest number of tokens of an utterance, the pads at both ends included.
  int64_t max_tokens() const { return positions_; }
  // ids: i32 [rows], positions: i32 [rows] in the utterance; both 0 in gaps; in host memory. y: f32 [rows,
  // hidden_dim] (rows may be strided).
  void forward(const Rows& rows, std::span<const int32_t> ids, std::span<const int32_t> positions,
               TensorView y) const;

 private:
  void attend(const Rows& rows, TensorView x) const;
  void feed_forward(const Rows& rows, TensorView x) const;

  int64_t words_, positions_, layers_, heads_, width_;
  Tensor embedding_;                                    // f32 [words + positions + 1, embedding width]
  Tensor embedding_norm_weight_, embedding_norm_bias_;  // f32 [embedding width]
  ops::PackedMatrix map_, qkv_, dense_, expand_, contract_;
  Tensor attention_norm_weight_, attention_norm_bias_;  // f32 [width]
  Tensor output_norm_weight_, output_norm_bias_;        // f32 [width]
  ops::PackedMatrix out_;                               // width -> hidden_dim
};

}  // namespace shoal::kokoro
