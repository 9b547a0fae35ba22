// The prosody: durations of phonemes, and the pitch and energy of every frame (MODEL.md, Tokens 2, 3 and
// Frames 6).
#pragma once

#include <vector>

#include "models/kokoro/config.h"
#include "models/kokoro/layers.h"
#include "models/kokoro/loader.h"
#include "models/kokoro/rows.h"
#include "models/kokoro/style.h"
#include "ops/lstm.h"

namespace shoal::kokoro {

class DurationPredictor {
 public:
  DurationPredictor(Loader& loader, StyleTable& styles, const Config& config);

  // d: f32 [rows, hidden_dim + style_dim], of which the first hidden_dim columns hold PLBERT's output and the
  // others are anything: overwritten by the encoded text. styles: f32 [utterances, style_dim], dense;
  // utterance_of: i32 [rows], 0 in gaps, in the device's memory; logits: f32 [rows, max_dur].
  void forward(const Rows& rows, TensorView affines, TensorView styles, TensorView utterance_of, TensorView d,
               TensorView logits) const;

 private:
  void encode(const Rows& rows, TensorView affines, TensorView utterance_of, TensorView d) const;

  struct Layer {
    ops::PackedLstm lstm;
    StyleColumns norm;
  };
  int64_t width_;
  std::vector<Layer> layers_;
  ops::PackedLstm lstm_;
  ops::PackedMatrix projection_;
};

// Frames of a token from its logits: sum of their sigmoids over the speed, rounded half to even, at least 1.
// speed: above 0.
int32_t duration(std::span<const float> logits, float speed);

class PitchPredictor {
 public:
  PitchPredictor(Loader& loader, StyleTable& styles, const Config& config);

  // x: f32 [rows, hidden_dim + style_dim], d of each frame's token. f0, energy: f32 [2 * rows, 1]; their gaps
  // become zeros. f0 is in Hz.
  void forward(const Rows& rows, TensorView affines, TensorView x, TensorView f0, TensorView energy) const;

 private:
  struct Stack {
    std::vector<StyledBlock> blocks;
    ops::PackedMatrix projection;
  };
  static Stack load_stack(Loader& loader, StyleTable& styles, const std::string& name, int64_t width);
  void run(const Rows& rows, const Stack& stack, const std::string& name, TensorView affines, TensorView x,
           TensorView y) const;

  int64_t width_;
  ops::PackedLstm shared_;
  Stack f0_, energy_;
};

}  // namespace shoal::kokoro
