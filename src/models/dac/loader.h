// Where the codec's weights come from, and how they are brought into the form the ops want.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "models/dac/state.h"
#include "ops/context.h"
#include "ops/packed_matrix.h"
#include "tensor/tensor.h"
#include "weights/checkpoint.h"

namespace shoal::dac {

// A tensor that is either a view into the source or owned by the reader.
struct Weight {
  Tensor owned;
  TensorView view;  // dense f32, bf16 or f16
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual Weight tensor(const std::string& name, const Shape& shape) = 0;
  // The kernel of a convolution, f32: `<prefix>.weight`, or either form of weight norm folded (MODEL.md,
  // Blocks).
  virtual Weight convolution(const std::string& prefix, const Shape& shape) = 0;
};

// Throws Error: not_found, corrupt_file (a shape differs). The checkpoint and the team must outlive it.
std::unique_ptr<WeightSource> read_weights(const weights::Checkpoint& checkpoint, ThreadTeam& team);
// Values of the size that training leaves: products keep the scale of their inputs, norms and alphas are near
// 1, layer scales near 0.1. A pure function of (seed, name, shape).
std::unique_ptr<WeightSource> random_weights(uint64_t seed, ThreadTeam& team);

// What a layer is built with: it names each of its tensors once, with its shape, and registers its state.
class Loader {
 public:
  Loader(WeightSource& source, ops::Context& ctx, DType dtype, StateLayout& layout)
      : source_(source), ctx_(ctx), dtype_(dtype), layout_(layout) {}

  ops::Context& ctx() const { return ctx_; }
  DType dtype() const { return dtype_; }
  StateLayout& layout() const { return layout_; }
  WeightSource& source() const { return source_; }
  // Bytes of everything loaded so far.
  int64_t bytes() const { return bytes_; }

  // f32 copy of `name`, dense in that shape: where ops read it, or on the host, uncounted.
  Tensor f32(const std::string& name, const Shape& shape) { return placed(host_f32(name, shape)); }
  Tensor host_f32(const std::string& name, const Shape& shape);
  // `prefix`.weight [outputs, depth], and `prefix`.bias where asked for.
  ops::PackedMatrix linear(const std::string& prefix, int64_t outputs, int64_t depth, bool bias);
  ops::PackedMatrix gate_up(const std::string& gate, const std::string& up, int64_t hidden, int64_t depth);
  // Convolutions with their biases; kernels [out, in, k], transposed [in, out, k].
  ops::PackedMatrix conv(const std::string& prefix, int64_t in, int64_t out, int64_t kernel, DType dtype);
  ops::PackedMatrix strided_conv(const std::string& prefix, int64_t in, int64_t out, int64_t kernel,
                                 int64_t stride);
  ops::PackedMatrix transposed_conv(const std::string& prefix, int64_t in, int64_t out, int64_t kernel,
                                    int64_t stride);
  // Moves what a layer made by itself to where ops read it, and counts it.
  Tensor placed(Tensor host);

 private:
  ops::PackedMatrix counted(ops::PackedMatrix matrix);

  WeightSource& source_;
  ops::Context& ctx_;
  DType dtype_;
  StateLayout& layout_;
  int64_t bytes_ = 0;
};

}  // namespace shoal::dac
