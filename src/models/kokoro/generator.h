// From features and a harmonic source to samples: iSTFTNet (MODEL.md, Samples).
#pragma once

#include <vector>

#include "models/kokoro/config.h"
#include "models/kokoro/layers.h"
#include "models/kokoro/loader.h"
#include "models/kokoro/rows.h"
#include "models/kokoro/style.h"
#include "ops/harmonic_source.h"
#include "ops/short_stft.h"

namespace shoal::kokoro {

class Generator {
 public:
  Generator(Loader& loader, StyleTable& styles, const Config& config);

  // Rows of a spectrum for each row of the features.
  int64_t spectrum_rate() const { return spectrum_rate_; }
  int64_t samples_per_row() const { return spectrum_rate_ * stft_.hop; }

  // rows: those of f0 and the features. f0: f32 [rows, 1] in Hz. -> f32 [rows * spectrum_rate(), 2 * bins] in
  // the enclosing scope: magnitudes and phases of the source.
  TensorView excite(const Rows& rows, TensorView f0, const ops::SourceNoise& noise) const;
  // x: f32 [rows, upsample_initial_channel], changed; harmonics: of excite(); samples: f32 [rows *
  // samples_per_row()]; its gaps become zeros.
  void forward(const Rows& rows, TensorView affines, TensorView x, TensorView harmonics,
               TensorView samples) const;

 private:
  struct Stage {
    int64_t rate = 1, padding = 0, channels = 0;  // of the transposed convolution
    ops::PackedMatrix up, noise_conv;
    int64_t noise_stride = 1, noise_padding = 0;
    std::vector<SnakeBlock> noise_block;  // one
    std::vector<SnakeBlock> blocks;
  };
  Stage load_stage(Loader& loader, StyleTable& styles, const Config& config, size_t index) const;
  void noise(const Rows& rows, size_t index, TensorView affines, TensorView harmonics, TensorView y) const;
  static TensorView activated(const Rows& rows, TensorView x, float factor, float slope,
                              const ops::PackedMatrix& next);
  TensorView run(const Rows& rows, size_t index, TensorView affines, TensorView x,
                 TensorView harmonics) const;

  int64_t spectrum_rate_ = 1;
  ops::ShortStft stft_;
  Tensor source_weight_, source_bias_;
  std::vector<Stage> stages_;
  ops::PackedMatrix post_;
};

}  // namespace shoal::kokoro
