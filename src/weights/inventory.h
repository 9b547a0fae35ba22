// Compares the tensors that a model needs with those of a checkpoint.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tensor/shape.h"
#include "weights/checkpoint.h"

namespace shoal::weights {

// One tensor that a model needs, by the name it is bound under.
struct RequiredTensor {
  std::string name;  // full name; of a weight-normed convolution its prefix ("decoder.model.0.conv")
  Shape shape;
  std::string part;  // which part of the model it belongs to, for sums
  bool weight_normed =
      false;  // may be stored as prefix.weight, or in either form of weight norm (weight_norm.h)
  // Of what may be kept as integers (quantised.h): the axis that counts its outputs.
  std::optional<int> outputs_axis = {};

  struct Found {
    std::vector<std::string> names;  // the checkpoint's tensors that serve it
    std::string problem;  // "layers.0.wo.weight is missing, expected [4, 4]"; empty when all is well
  };
  Found stored_in(const Checkpoint& checkpoint) const;
};

}  // namespace shoal::weights
