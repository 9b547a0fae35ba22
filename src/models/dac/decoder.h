// Codes -> wave: the dequantiser, then the convolutional decoder (MODEL.md, Decoding).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "models/dac/batch.h"
#include "models/dac/config.h"
#include "models/dac/decode_memory.h"
#include "models/dac/layers.h"
#include "models/dac/loader.h"
#include "models/dac/quantiser.h"

namespace shoal::dac {

class Decoder {
 public:
  Decoder(weights::TensorSource& source, ops::Context& ctx, const Config& config, MatrixFormat format);

  // The state of an utterance between calls.
  const StateLayout& layout() const { return layout_; }
  int64_t convolution_bytes() const { return convolution_bytes_; }
  int64_t quantiser_bytes() const { return quantiser_bytes_; }

  // Frames of all sequences that one pass takes on.
  static int64_t frames_per_pass(Device device);
  // The memory that the passes of `streams` utterances, decoded together, need.
  DecodeSizes sizes(int streams) const;

  // batch: frames, any number, of sequences that have some. codes: [frames, num_codebooks], none negative.
  // `take` receives the samples piece by piece, in order, while the device already computes the next ones.
  void forward(const Batch& batch, const DecodeMemory& memory, std::span<const int32_t> codes,
               FunctionRef<void(std::span<const float>)> take) const;

 private:
  // One pass: everything that the host makes of it, in `memory`.
  struct Pass {
    ops::StepKey key;
    Batch frames;
    std::span<const WindowTransformer::Plan> plans;  // of the dequantiser's post_module
    TensorView table_rows;                           // i32 [frames, num_codebooks]
    TensorView samples;                              // f32 [frames * samples_per_frame, 1]
    int64_t input_bytes = 0;
  };
  Pass prepare(const Batch& frames, const DecodeMemory& memory, std::span<const int32_t> codes) const;
  // The plans of a pass's attention, in `in` and the host memory of the enclosing scope. count: of them.
  std::span<const WindowTransformer::Plan> write_plans(const Batch& frames, int64_t count, TensorView rope,
                                                       const PassInputs& in) const;
  // The launches of a pass, from its inputs to its samples.
  void run(const Pass& pass, const DecodeMemory& memory) const;

  // Snake and transposed convolution, then residual units.
  struct Block {
    int64_t stride, out;
    int64_t samples_per_row;  // of its input
    CausalConv conv;
    std::vector<ResidualUnit> units;
  };
  // Everything from block `index` on (counted from 0), for its input rows x.   samples: f32 [.., 1].
  void consume(size_t index, const Batch& batch, TensorView x, TensorView samples) const;

  Config config_;
  Device device_;
  StateLayout layout_;
  int64_t convolution_bytes_ = 0, quantiser_bytes_ = 0;
  std::unique_ptr<Dequantiser> dequantiser_;
  std::unique_ptr<CausalConv> first_, last_;
  std::vector<Block> blocks_;
};

}  // namespace shoal::dac
