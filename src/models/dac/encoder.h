// Wave -> codes: the convolutional encoder (MODEL.md, Encoding), then the quantiser.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/dac/batch.h"
#include "models/dac/config.h"
#include "models/dac/layers.h"
#include "models/dac/loader.h"
#include "models/dac/quantiser.h"
#include "models/dac/window_transformer.h"

namespace shoal::dac {

class Encoder {
 public:
  Encoder(weights::TensorSource& source, ops::Context& ctx, const Config& config, MatrixFormat format);

  // The state of a clip between calls of the encoder.
  const StateLayout& layout() const { return layout_; }
  int64_t convolution_bytes() const { return convolution_bytes_; }
  int64_t quantiser_bytes() const { return quantiser_bytes_; }

  // Frames of the longest clip whose rows all have positions in every transformer.
  int64_t most_frames() const { return most_frames_; }

  // batch: frames, any number.   Sequence s has the samples [clips.begin(s), + clips.count(s)), silence up to
  // its last frame's end. found: i32 [frames, num_codebooks] on the device; codes: the same for the host.
  void forward(const Batch& batch, const ops::RaggedRows& clips, std::span<const float> samples,
               TensorView found, std::span<int32_t> codes) const;

  // Of one pass.
  static int64_t frames_per_pass(Device device);
  // Independent of the configuration's head_dim.
  static constexpr int64_t transformer_heads(int64_t dim) { return dim / 64; }

 private:
  // Residual units, snake and strided convolution, perhaps a transformer.
  struct Block {
    int64_t stride, in;
    int64_t samples_per_row;  // of its output
    std::vector<ResidualUnit> units;
    CausalConv conv;
    std::unique_ptr<WindowTransformer> transformer;
  };
  Block load_block(Loader& loader, size_t index, int64_t samples_per_row) const;
  // The samples of frames [begin, end) of the batch, on the device: f32 [frames * samples_per_frame, 1].
  TensorView padded_wave(const Batch& batch, int64_t begin, int64_t end, const ops::RaggedRows& clips,
                         std::span<const float> samples) const;
  // codes: i32 [frames, num_codebooks].
  void encode_piece(const Batch& batch, TensorView wave, TensorView codes) const;
  // y: output of block `index` (counted from 1; 0 is the first convolution) for the rows of `batch`, whose
  // samples are `wave`.
  void produce(size_t index, const Batch& batch, TensorView wave, TensorView y) const;

  Config config_;
  Device device_;
  StateLayout layout_;
  int64_t convolution_bytes_ = 0, quantiser_bytes_ = 0;
  int64_t most_frames_ = kMaxPositions;
  std::unique_ptr<CausalConv> first_, last_;
  std::vector<Block> blocks_;
  std::unique_ptr<Quantiser> quantiser_;
};

}  // namespace shoal::dac
