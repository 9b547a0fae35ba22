// What layers are built with: it brings weights into the form that the ops want.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/function_ref.h"
#include "ops/context.h"
#include "ops/packed_matrix.h"
#include "tensor/tensor.h"
#include "weights/source.h"

namespace shoal::kokoro {

// Values of the size that training leaves: products keep the scale of their inputs, norms and alphas are near
// 1. Tokens last about three frames and the pitch is about 150 Hz, so that benchmarks speak as people do. A
// pure function of (seed, name, shape). The team must outlive it.
std::unique_ptr<weights::TensorSource> random_weights(uint64_t seed, ThreadTeam& team);

// A linear map from a style to the [scales | shifts] of a norm.
struct StyleAffine {
  Tensor weight;  // f32 [2 * channels, style_dim], in host memory
  Tensor bias;    // f32 [2 * channels]
};

class Loader {
 public:
  // dtype: of the matrices of linear().
  Loader(weights::TensorSource& source, ops::Context& ctx, DType dtype)
      : source_(source), ctx_(ctx), dtype_(dtype) {}

  ops::Context& ctx() const { return ctx_; }
  DType dtype() const { return dtype_; }
  // Whether weights are without memory (weights::NamesOnly).
  bool names_only() const { return source_.names_only(); }
  // Bytes of everything that was counted.
  int64_t bytes() const { return bytes_; }

  // f32 of that very shape: where ops read it, or the caller's own on the host, uncounted.
  Tensor f32(const std::string& name, const Shape& shape) { return placed(host_f32(name, shape)); }
  Tensor host_f32(const std::string& name, const Shape& shape) {
    return weights::to_f32(source_.tensor(name, shape), ctx_.team);
  }
  // The kernel of a convolution as the checkpoint has it, weight norm folded; f32 on the host, uncounted.
  Tensor convolution(const std::string& prefix, const Shape& shape) {
    return weights::to_f32(source_.convolution(prefix, shape), ctx_.team);
  }
  // `fc`.weight and .bias, where `fc` is "....fc". The norm it modulates has weights of its own in some
  // checkpoints ("....norm.weight"); they are folded in: (1 + scale) (w x + b) + shift
  // = (1 + ((1 + scale) w - 1)) x + ((1 + scale) b + shift).
  StyleAffine style_affine(const std::string& fc, int64_t channels, int64_t style_dim);
  // `prefix`.weight [outputs, depth], and `prefix`.bias where asked for.
  ops::PackedMatrix linear(const std::string& prefix, int64_t outputs, int64_t depth, bool bias);

  // Moves what a layer made by itself to where ops read it, and counts it.
  Tensor placed(Tensor host);
  // The same of what `make` makes of weights, f32, on the host. Of a source of names only it is not called.
  Tensor made(const Shape& shape, FunctionRef<Tensor()> make);
  // PackedMatrix, PackedLstm.
  template <typename Packed>
  Packed counted(Packed packed) {
    bytes_ += packed.bytes();
    return packed;
  }

 private:
  weights::TensorSource& source_;
  ops::Context& ctx_;
  DType dtype_;
  int64_t bytes_ = 0;
};

}  // namespace shoal::kokoro
