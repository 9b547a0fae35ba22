// The affine maps that turn a voice's style into scales and shifts of every norm
// (MODEL.md, Blocks).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/kokoro/loader.h"
#include "ops/packed_matrix.h"

namespace shoal::kokoro {

// Where a norm finds its [scales | shifts] in a row of StyleTable::forward.
struct StyleColumns {
  int64_t begin = 0, channels = 0;
  TensorView of(TensorView affines) const { return affines.columns(begin, begin + 2 * channels); }
  TensorView scales(TensorView affines) const { return affines.columns(begin, begin + channels); }
  TensorView shifts(TensorView affines) const {
    return affines.columns(begin + channels, begin + 2 * channels);
  }
};

// Which utterances of a batch have the same style: utterances of one voice with equally many phonemes use the
// same row of its pack (MODEL.md, Blocks).
struct SharedStyles {
  // styles: of each utterance.
  explicit SharedStyles(std::span<const std::span<const float>> styles);

  std::vector<int32_t> first;  // the first utterance of each distinct style
  std::vector<int32_t> of;     // for each utterance, which of these
};

// All of them that see one half of the style, as one matrix: one product an utterance.
class StyleTable {
 public:
  explicit StyleTable(int64_t style_dim) : style_dim_(style_dim) {}

  // `prefix`.weight [2 * channels, style_dim], .bias. scale_bias is added to the scales.
  StyleColumns add(Loader& loader, const std::string& prefix, int64_t channels, float scale_bias = 0);
  // After the last add().
  void pack(Loader& loader);

  int64_t columns() const { return columns_; }

  // styles: f32 [utterances, style_dim], dense or strided; affines: f32 [utterances, columns]. shared: equal
  // styles are computed once; or null.
  void forward(ops::Context& ctx, TensorView styles, const SharedStyles* shared, TensorView affines) const;

 private:
  int64_t style_dim_, columns_ = 0;
  std::vector<float> weights_, biases_;  // until pack()
  ops::PackedMatrix matrix_;
};

}  // namespace shoal::kokoro
