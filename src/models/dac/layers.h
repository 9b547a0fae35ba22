// The convolutional building blocks (MODEL.md, Blocks), each with its weights and the place of its state.
#pragma once

#include <span>
#include <string>

#include "base/function_ref.h"
#include "models/dac/batch.h"
#include "models/dac/loader.h"
#include "ops/linear.h"
#include "ops/packed_matrix.h"

namespace shoal::dac {

// A causal convolution of any kind, with the snake before it where there is one. Strided and transposed ones
// are stride-1 convolutions over rows viewed at the lower rate (ops/packed_matrix.h), so all three share code
// and state.
class CausalConv {
 public:
  struct Spec {
    std::string prefix;  // of .weight (or its weight norm) and .bias
    int64_t in = 0, out = 0;
    int64_t kernel = 1;
    int64_t dilation = 1;    // plain only
    std::string snake = {};  // name of the alpha [1, in, 1]; empty: none
  };
  // 64 -> 64 channels at one rate.
  static CausalConv plain(Loader& loader, const Spec& spec);
  // The same with a matrix that is f32 in every format: of a convolution of one channel.
  static CausalConv exact(Loader& loader, const Spec& spec);
  // `stride` times fewer rows.  kernel: a multiple of stride.
  static CausalConv strided(Loader& loader, const Spec& spec, int64_t stride);
  // `stride` times more rows.  kernel: a multiple of stride.
  static CausalConv transposed(Loader& loader, const Spec& spec, int64_t stride);

  const ops::PackedMatrix& weight() const { return weight_; }
  int64_t dilation() const { return dilation_; }
  TensorView snake_alpha() const { return snake_alpha_; }
  const History& history() const { return history_; }
  // As what reads residual units of this many channels.
  ops::ConvReader reader(int64_t channels) const;

  // batch: rows at the lower of the two rates.   x: f32 [in rows, in], or what run_units made for it; y: f32
  // [out rows, out]; contiguous.
  void forward(const Batch& batch, TensorView x, TensorView y, const ops::Epilogue& epilogue = {}) const;

 private:
  CausalConv(Loader& loader, ops::PackedMatrix weight, int64_t dilation, const Spec& spec, int64_t stride);

  ops::PackedMatrix weight_;
  int64_t dilation_;
  Tensor snake_alpha_;  // f32 [depth]
  History history_;
};

// x + conv1(snake(conv7(snake(x)))), dilation of the conv7 1, 3 or 9. dac/MODEL.md, Blocks.
class ResidualUnit {
 public:
  ResidualUnit(Loader& loader, const std::string& prefix, int64_t channels, int64_t dilation);
  // x, y: f32 [rows, channels]; y is x, or may be another if is_apart.
  void forward(const Batch& batch, TensorView x, TensorView y) const;
  // ops::residual_unit_is_apart for the rows of a batch.
  bool is_apart(const Batch& batch) const;
  // Whether forward_for can put its rows where f32 rows would go.
  bool makes_ready(const Batch& batch, const CausalConv& reader) const;
  // The result, ready for the reader, in the memory of `y`. x, y: as forward's, apart.
  TensorView forward_for(const Batch& batch, const CausalConv& reader, TensorView x, TensorView y) const;

 private:
  ops::ResidualConvs convs() const;

  CausalConv conv7_, conv1_;
};

// Residual units one after the other. `fill` writes their input, f32 [rows, channels]. Returns the result, in
// the memory of y: f32, or ready for `reader` where the last unit makes that. reader: what alone reads the
// result, or null.
TensorView run_units(const Batch& batch, std::span<const ResidualUnit> units, const CausalConv* reader,
                     TensorView y, FunctionRef<void(TensorView)> fill);

// The same in buffers of its own, of the enclosing scope: until the input is there, only one is taken, so
// that `fill` may use the memory of the other.
TensorView run_units(const Batch& batch, std::span<const ResidualUnit> units, const CausalConv& reader,
                     int64_t channels, FunctionRef<void(TensorView)> fill);

// x += gamma * W2 gelu(W1 layer_norm(depthwise7(x))). dac/MODEL.md, Blocks.
class ConvNextBlock {
 public:
  ConvNextBlock(Loader& loader, const std::string& prefix, int64_t channels);
  // x: f32 [rows, channels], in place.
  void forward(const Batch& batch, TensorView x) const;

 private:
  int64_t channels_;
  Tensor depthwise_, depthwise_bias_;  // f32 [7, channels], [channels]
  History history_;
  Tensor norm_weight_, norm_bias_;  // f32 [channels]
  ops::PackedMatrix expand_, contract_;
  Tensor gamma_;  // f32 [channels]
};

}  // namespace shoal::dac
