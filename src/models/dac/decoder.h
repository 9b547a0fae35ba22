// Codes -> wave: the dequantiser, then the convolutional decoder (spec dac 3.3).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/dac/batch.h"
#include "models/dac/config.h"
#include "models/dac/layers.h"
#include "models/dac/loader.h"
#include "models/dac/quantiser.h"

namespace shoal::dac {

class Decoder {
 public:
  Decoder(WeightSource& source, ops::Context& ctx, const Config& config, DType dtype);

  // What an utterance carries between calls.
  const StateLayout& layout() const { return layout_; }
  int64_t convolution_bytes() const { return convolution_bytes_; }
  int64_t quantiser_bytes() const { return quantiser_bytes_; }

  // batch: frames, any number.   codes: [frames, num_codebooks], none negative; pcm: [frames *
  // samples_per_frame].
  void forward(const Batch& batch, std::span<const int32_t> codes, std::span<float> pcm) const;

  static constexpr int64_t kFramesPerPass = 64;

 private:
  // Snake and transposed convolution, then residual units.
  struct Block {
    int64_t stride, out;
    int64_t samples_per_row;  // of its input
    CausalConv conv;
    std::vector<ResidualUnit> units;
  };
  // Everything from block `index` on (counted from 0), for its input rows x.
  void consume(size_t index, const Batch& batch, TensorView x, std::span<float> pcm) const;

  Config config_;
  StateLayout layout_;
  int64_t convolution_bytes_ = 0, quantiser_bytes_ = 0;
  std::unique_ptr<Dequantiser> dequantiser_;
  std::unique_ptr<CausalConv> first_, last_;
  std::vector<Block> blocks_;
};

}  // namespace shoal::dac
