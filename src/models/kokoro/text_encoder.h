// The text features for the decoder: convolutions and an LSTM over phonemes (MODEL.md, Tokens 4).
#pragma once

#include <vector>

#include "models/kokoro/config.h"
#include "models/kokoro/loader.h"
#include "models/kokoro/rows.h"
#include "ops/lstm.h"

namespace shoal::kokoro {

// The LSTM of `prefix`: inputs -> 2 * hidden.
ops::PackedLstm load_lstm(Loader& loader, const std::string& prefix, int64_t inputs, int64_t hidden);

class TextEncoder {
 public:
  TextEncoder(Loader& loader, const Config& config);

  // ids: i32 [rows, n], of which the first column counts, 0 in gaps, in the device's memory.   y: f32 [rows,
  // hidden_dim]; its gaps become zeros.
  void forward(const Rows& rows, TensorView ids, TensorView y) const;

 private:
  struct Layer {
    ops::PackedMatrix conv;
    Tensor gamma, beta;  // f32 [hidden_dim]
  };
  int64_t width_;
  Tensor embedding_;  // f32 [n_token, hidden_dim]
  std::vector<Layer> layers_;
  ops::PackedLstm lstm_;
};

}  // namespace shoal::kokoro
