// Where a model's weights come from: a checkpoint, random values, or nowhere, when only their names and sizes
// matter. A model asks for each of its tensors once, by name and shape, whatever the source.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/thread_team.h"
#include "tensor/tensor.h"
#include "weights/checkpoint.h"
#include "weights/inventory.h"

namespace shoal::weights {

// A tensor in host memory: a view into the source, valid while the source lives, or the reader's own.
struct Weight {
  Weight() = default;
  explicit Weight(TensorView stored) : view(stored) {}
  explicit Weight(Tensor made) : owned(std::move(made)), view(owned.view()) {}

  Tensor owned;
  TensorView view;  // dense f32, bf16 or f16; without memory (Tensor::sized) of a source of names only
  // Of a layer's matrix or kernel in i8, f8 or 4 bits (u8): StoredIntegers (quantised.h); else empty.
  TensorView scales;
  TensorView minima;  // of one in 4 bits
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  // For tensors that a model may have and may lack.
  virtual bool contains(std::string_view name) const = 0;
  // Of that very shape. Throws Error: not_found, corrupt_file.
  virtual Weight tensor(const std::string& name, const Shape& shape) = 0;
  // A matrix of a model's layers: also one that a checkpoint keeps in 8 or 4 bits.
  virtual Weight layer_matrix(const std::string& name, const Shape& shape) { return tensor(name, shape); }
  // The same of the kernel of a convolution, whose outputs `outputs_axis` of the shape counts.
  virtual Weight layer_convolution(const std::string& prefix, const Shape& shape,
                                   [[maybe_unused]] int outputs_axis) {
    return convolution(prefix, shape);
  }
  // The kernel of a convolution, f32: `prefix`.weight, or either form of weight norm folded (weight_norm.h).
  virtual Weight convolution(const std::string& prefix, const Shape& shape) = 0;
  // Whether weights are without memory: nothing is to be computed from them.
  virtual bool names_only() const { return false; }
};

// f32 of the caller's own: converted, or taken over. Of a weight without memory: as it is.
Tensor to_f32(Weight weight, ThreadTeam* team);

// Pages of the files that have been read are given back as it goes, so that they never stand beside all that
// is made of them. The checkpoint and the team must outlive it.
std::unique_ptr<TensorSource> read_weights(const Checkpoint& checkpoint, ThreadTeam& team);

// Values for models without a checkpoint. draw: a pure function of name and shape. lacks: of the optional
// tensors, those whose names have this in them; empty: none.
using DrawTensor = std::function<Tensor(const std::string& name, const Shape& shape)>;
std::unique_ptr<TensorSource> draw_weights(DrawTensor draw, std::string lacks = "");

// Writes down what is asked for. It has none of the optional tensors.
class NamesOnly final : public TensorSource {
 public:
  // part_of: the part of the model that a tensor belongs to (RequiredTensor).
  explicit NamesOnly(std::function<std::string(std::string_view name)> part_of = {})
      : part_of_(std::move(part_of)) {}

  bool contains(std::string_view) const override { return false; }
  Weight tensor(const std::string& name, const Shape& shape) override {
    return note({.name = name, .shape = shape});
  }
  Weight layer_matrix(const std::string& name, const Shape& shape) override {
    return note({.name = name, .shape = shape, .outputs_axis = 0});
  }
  Weight convolution(const std::string& prefix, const Shape& shape) override {
    return note({.name = prefix, .shape = shape, .weight_normed = true});
  }
  Weight layer_convolution(const std::string& prefix, const Shape& shape, int outputs_axis) override {
    return note({.name = prefix, .shape = shape, .weight_normed = true, .outputs_axis = outputs_axis});
  }
  bool names_only() const override { return true; }

  // In the order in which they were first asked for.
  std::vector<RequiredTensor> take() { return std::move(tensors_); }

 private:
  Weight note(RequiredTensor tensor);

  std::function<std::string(std::string_view)> part_of_;
  std::unordered_set<std::string> known_;
  std::vector<RequiredTensor> tensors_;
};

}  // namespace shoal::weights
