// From text, pitch and energy of every frame to the generator's features (MODEL.md, Frames 7).
#pragma once

#include <vector>

#include "models/kokoro/config.h"
#include "models/kokoro/layers.h"
#include "models/kokoro/loader.h"
#include "models/kokoro/rows.h"
#include "models/kokoro/style.h"

namespace shoal::kokoro {

class Decoder {
 public:
  Decoder(Loader& loader, StyleTable& styles, const Config& config);

  int64_t outputs() const { return blocks_.back().outputs(); }
  // asr: f32 [rows, hidden_dim], in order; f0, energy: f32 [2 * rows, 1], in order.
  // y: f32 [2 * rows, outputs()], dense.
  void forward(const Rows& rows, TensorView affines, TensorView asr, TensorView f0, TensorView energy,
               TensorView y) const;

 private:
  int64_t hidden_, width_, asr_width_;
  ops::PackedMatrix f0_conv_, energy_conv_, asr_res_;
  std::vector<StyledBlock> encode_;  // one
  std::vector<StyledBlock> blocks_;
};

}  // namespace shoal::kokoro
