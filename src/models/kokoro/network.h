// All parts of the model, and the two steps that a batch goes through.
#pragma once

#include <cstdint>

#include "models/kokoro/config.h"
#include "models/kokoro/decoder.h"
#include "models/kokoro/generator.h"
#include "models/kokoro/loader.h"
#include "models/kokoro/memory_sizes.h"
#include "models/kokoro/plbert.h"
#include "models/kokoro/prosody.h"
#include "models/kokoro/rows.h"
#include "models/kokoro/style.h"
#include "models/kokoro/text_encoder.h"
#include "ops/harmonic_source.h"

namespace shoal::kokoro {

// The input of the step over tokens.
struct TokenInputs {
  TensorView parts;         // i32 [rows, 3] (PlBert::forward)
  TensorView utterance_of;  // i32 [rows], 0 in gaps
  TensorView styles;        // f32 [utterances, 2 * style_dim]: the decoder's half, then the predictor's
};

// The output of the step over tokens: the input of the step over frames.
struct Encoded {
  TensorView prosody, decoder;  // f32 [utterances, columns]: the norms' affines (StyleTable)
  TensorView d;                 // f32 [token rows, hidden_dim + style_dim]
  TensorView text;              // f32 [token rows, hidden_dim]
};

// The input of the step over frames.
struct Score {
  Encoded encoded;      // its affines: of the utterances of these frames
  TensorView token_of;  // i32 [rows]: token rows; a gap's in gaps
  ops::SourceNoise noise;
};

class Network {
 public:
  // front: loads the layers before the decoder in f32.
  Network(Loader& front, Loader& back, const Config& config);

  const Config& config() const { return config_; }
  DType dtype() const { return dtype_; }
  const WeightBytes& weight_bytes() const { return bytes_; }
  int64_t samples_per_frame() const { return 2 * generator_.samples_per_row(); }
  // Of Encoded's affines.
  int64_t prosody_columns() const { return prosody_styles_.columns(); }
  int64_t decoder_columns() const { return decoder_styles_.columns(); }

  // The affines of TokenInputs::styles; with `shared` (which uploads), once for all that have the same style.
  void map_styles(ops::Context& ctx, TensorView styles, const SharedStyles* shared,
                  const Encoded& encoded) const;
  // d and text: their first rows are those of the batch; the affines are given. logits: f32 [rows, max_dur],
  // from which durations follow (prosody.h).
  void encode(const Rows& rows, const TokenInputs& in, const Encoded& encoded, TensorView logits) const;
  // samples: f32 [rows * samples_per_frame()]; gaps become zeros.
  void render(const Rows& rows, const Score& score, TensorView samples) const;

 private:
  TensorView decoder_half(TensorView styles) const { return styles.columns(0, config_.style_dim); }
  TensorView predictor_half(TensorView styles) const {
    return styles.columns(config_.style_dim, 2 * config_.style_dim);
  }

  const Config config_;
  const DType dtype_;
  WeightBytes bytes_;  // before the parts, which are counted as they are loaded
  int64_t decoders_style_columns_ = 0;
  StyleTable prosody_styles_{config_.style_dim}, decoder_styles_{config_.style_dim};
  PlBert bert_;
  DurationPredictor durations_;
  PitchPredictor pitch_;
  Decoder decoder_;
  Generator generator_;
  TextEncoder text_;
};

}  // namespace shoal::kokoro
