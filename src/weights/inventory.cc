#include "weights/inventory.h"

#include <array>
#include <string_view>
#include <utility>

namespace shoal::weights {
namespace {

using Found = RequiredTensor::Found;

Found missing(const RequiredTensor& tensor) {
  return {{}, concat(tensor.name, " is missing, expected ", tensor.shape)};
}

Found compare(const Checkpoint& checkpoint, const std::string& name, const Shape& expected) {
  const TensorView& view = *checkpoint.find(name);
  if (view.shape() == expected) return {{name}, ""};
  // Two weights of 4 bits a byte (quantised.h).
  if (view.dtype() == DType::u8 && expected.rank() == 2 && expected[1] % 2 == 0 &&
      view.shape() == Shape{expected[0], expected[1] / 2})
    return {{name}, ""};
  return {{name}, concat(name, " has shape ", view.shape(), ", expected ", expected)};
}

// (magnitude, direction) names of the two forms of weight norm.
constexpr std::array<std::array<std::string_view, 2>, 2> kNormForms = {
    {{".parametrizations.weight.original0", ".parametrizations.weight.original1"},
     {".weight_g", ".weight_v"}}};

Found find_convolution(const Checkpoint& checkpoint, const RequiredTensor& tensor) {
  if (checkpoint.contains(tensor.name + ".weight"))
    return compare(checkpoint, tensor.name + ".weight", tensor.shape);
  for (const auto& [magnitude, direction] : kNormForms) {
    const std::string g = tensor.name + std::string(magnitude), v = tensor.name + std::string(direction);
    if (!checkpoint.contains(g) || !checkpoint.contains(v)) continue;
    Found found = compare(checkpoint, v, tensor.shape);
    if (found.problem.empty()) found = compare(checkpoint, g, {tensor.shape[0], 1, 1});
    found.names = {g, v};
    return found;
  }
  return missing(tensor);
}

// wqkv, or its rows apart (dual_ar/MODEL.md 7).
Found find_qkv_parts(const Checkpoint& checkpoint, const RequiredTensor& tensor) {
  const std::string stem = tensor.name.substr(0, tensor.name.size() - std::string_view("wqkv.weight").size());
  int64_t rows = 0;
  std::vector<std::string> names;
  for (const std::string_view part : {"wq.weight", "wk.weight", "wv.weight"}) {
    const TensorView* view = checkpoint.find(names.emplace_back(stem + std::string(part)));
    if (!view || view->rank() != 2) return missing(tensor);
    rows += view->dim(0);
  }
  if (rows == tensor.shape[0]) return {std::move(names), ""};
  return {std::move(names),
          concat(stem, "wq, wk, wv have ", rows, " rows together, expected ", tensor.shape[0])};
}

}  // namespace

Found RequiredTensor::stored_in(const Checkpoint& checkpoint) const {
  if (weight_normed) return find_convolution(checkpoint, *this);
  if (checkpoint.contains(name)) return compare(checkpoint, name, shape);
  if (name.ends_with("wqkv.weight")) return find_qkv_parts(checkpoint, *this);
  return missing(*this);
}

}  // namespace shoal::weights
