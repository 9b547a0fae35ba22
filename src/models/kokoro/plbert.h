// PLBERT: an ALBERT over phonemes, one layer used many times (MODEL.md, Tokens 1).
#pragma once

#include <array>
#include <cstdint>

#include "models/kokoro/config.h"
#include "models/kokoro/loader.h"
#include "models/kokoro/rows.h"
#include "ops/packed_matrix.h"

namespace shoal::kokoro {

class PlBert {
 public:
  PlBert(Loader& loader, const Config& config);

  // The rows of one table whose sum is the embedding of an id at a position of its utterance.
  static std::array<int32_t, 3> parts(const Config& config, int32_t id, int32_t position) {
    const auto words = static_cast<int32_t>(config.n_token);
    return {id, words + position, words + static_cast<int32_t>(config.max_positions)};
  }
  // parts: i32 [rows, 3], in gaps those of id 0 at position 0, in the device's memory. y: f32 [rows,
  // hidden_dim] (rows may be strided).
  void forward(const Rows& rows, TensorView parts, TensorView y) const;

 private:
  void attend(const Rows& rows, TensorView x) const;
  void feed_forward(const Rows& rows, TensorView x) const;

  int64_t layers_, heads_, width_;
  Tensor embedding_;                                    // f32 [words + positions + 1, embedding width]
  Tensor embedding_norm_weight_, embedding_norm_bias_;  // f32 [embedding width]
  ops::PackedMatrix map_, qkv_, dense_, expand_, contract_;
  Tensor attention_norm_weight_, attention_norm_bias_;  // f32 [width]
  Tensor output_norm_weight_, output_norm_bias_;        // f32 [width]
  ops::PackedMatrix out_;                               // width -> hidden_dim
};

}  // namespace shoal::kokoro
