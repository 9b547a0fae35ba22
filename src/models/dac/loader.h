// How the codec's weights are brought into the form that the ops want.
#pragma once

#include <memory>
#include <string>

#include "base/function_ref.h"
#include "models/dac/state.h"
#include "ops/context.h"
#include "ops/packed_matrix.h"
#include "tensor/tensor.h"
#include "weights/source.h"

namespace shoal::dac {

// Values of the size that training leaves: products keep the scale of their inputs, norms and alphas are near
// 1, layer scales near 0.1. A pure function of (seed, name, shape). The team must outlive it.
std::unique_ptr<weights::TensorSource> random_weights(uint64_t seed, ThreadTeam& team);

// What a layer is built with: it names each of its tensors once, with its shape, and registers its state.
class Loader {
 public:
  // Integers of the source stay integers where the format has them, elsewhere they become the weights that
  // they stand for.
  Loader(weights::TensorSource& source, ops::Context& ctx, MatrixFormat format, StateLayout& layout)
      : source_(source), ctx_(ctx), format_(format), layout_(layout) {}

  ops::Context& ctx() const { return ctx_; }
  DType dtype() const { return format_.operand; }
  StateLayout& layout() const { return layout_; }
  weights::TensorSource& source() const { return source_; }
  bool names_only() const { return source_.names_only(); }
  // Bytes of everything loaded so far.
  int64_t bytes() const { return bytes_; }

  // f32 copy of `name`, dense in that shape: where ops read it, or on the host, uncounted.
  Tensor f32(const std::string& name, const Shape& shape) { return placed(host_f32(name, shape)); }
  Tensor host_f32(const std::string& name, const Shape& shape);
  // `prefix`.weight [outputs, depth], and `prefix`.bias where asked for.
  ops::PackedMatrix linear(const std::string& prefix, int64_t outputs, int64_t depth, bool bias);
  ops::PackedMatrix gate_up(const std::string& gate, const std::string& up, int64_t hidden, int64_t depth);
  // Convolutions with their biases; kernels [out, in, k], transposed [in, out, k].
  ops::PackedMatrix conv(const std::string& prefix, int64_t in, int64_t out, int64_t size);
  // In f32 whatever the format.
  ops::PackedMatrix exact_conv(const std::string& prefix, int64_t in, int64_t out, int64_t size);
  ops::PackedMatrix strided_conv(const std::string& prefix, int64_t in, int64_t out, int64_t size,
                                 int64_t stride);
  ops::PackedMatrix transposed_conv(const std::string& prefix, int64_t in, int64_t out, int64_t size,
                                    int64_t stride);
  // Moves what a layer made by itself to where ops read it, and counts it.
  Tensor placed(Tensor host);
  // The same of what `make` makes of weights, on the host. Of a source of names only it is not called.
  Tensor made(DType dtype, const Shape& shape, FunctionRef<Tensor()> make);

 private:
  ops::PackedMatrix counted(ops::PackedMatrix matrix);
  weights::Weight matrix(const std::string& name, const Shape& shape);
  weights::Weight kernel(const std::string& prefix, const Shape& shape, int outputs_axis);
  weights::Weight in_format(weights::Weight weight, int outputs_axis) const;

  weights::TensorSource& source_;
  ops::Context& ctx_;
  MatrixFormat format_;
  StateLayout& layout_;
  int64_t bytes_ = 0;
};

}  // namespace shoal::dac
