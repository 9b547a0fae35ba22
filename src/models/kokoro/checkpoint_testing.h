// For tests: checkpoints of any sizes in the published layout.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_folder_testing.h"
#include "models/kokoro/inventory.h"
#include "models/kokoro/loader.h"
#include "weights/archives_testing.h"
#include "weights/name_maps.h"

namespace shoal::kokoro {

enum class NormForm { weight_g, parametrized, plain };

struct StoredArray {
  std::string name;  // "decoder.encode.conv1.bias"
  Shape shape;
  std::vector<float> values;
};

// The checkpoint of a model with random weights; magnitudes of weight norms are 1, 2, 3, ...
inline std::vector<StoredArray> stored_arrays(const Config& config, NormForm form = NormForm::weight_g) {
  ThreadTeam team(1);
  const auto source = random_weights(/*seed=*/7, team);
  std::vector<StoredArray> arrays;
  const auto add = [&](const std::string& name, const Shape& shape) {
    const Tensor values = weights::to_f32(source->tensor(name, shape), nullptr);
    arrays.push_back({name, shape, {values.span<float>().begin(), values.span<float>().end()}});
  };
  std::vector<RequiredTensor> tensors = required_tensors(config);
  for (RequiredTensor& unused : unused_tensors(config)) tensors.push_back(std::move(unused));
  for (const RequiredTensor& tensor : tensors) {
    if (!tensor.weight_normed) {
      add(tensor.name, tensor.shape);
    } else if (form == NormForm::plain) {
      add(tensor.name + ".weight", tensor.shape);
    } else {
      const bool old = form == NormForm::weight_g;
      StoredArray gain{tensor.name + (old ? ".weight_g" : ".parametrizations.weight.original0"),
                       {tensor.shape[0], 1, 1},
                       {}};
      for (int64_t i = 1; i <= tensor.shape[0]; ++i) gain.values.push_back(static_cast<float>(i));
      arrays.push_back(std::move(gain));
      add(tensor.name + (old ? ".weight_v" : ".parametrizations.weight.original1"), tensor.shape);
    }
  }
  return arrays;
}

// A dict of parts, each a dict of tensors under names that begin with "module.".
inline std::string checkpoint_file(const std::vector<StoredArray>& arrays) {
  int64_t total = 0, offset = 0;
  for (const StoredArray& array : arrays) total += array.shape.elements();
  using Part = std::pair<std::string, std::vector<std::pair<std::string, std::string>>>;
  std::vector<Part> parts;
  std::string data;
  for (const StoredArray& array : arrays) {
    const auto dims = array.shape.dims();
    std::vector<int64_t> strides(dims.size(), 1);
    for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
    const size_t dot = array.name.find('.');
    const std::string part = array.name.substr(0, dot);
    auto to = std::ranges::find(parts, part, &Part::first);
    if (to == parts.end()) to = parts.insert(to, {part, {}});
    to->second.emplace_back("module" + array.name.substr(dot),
                            weights::pickle_tensor({.storage_elements = total,
                                                    .offset = offset,
                                                    .shape = {dims.begin(), dims.end()},
                                                    .strides = strides}));
    offset += array.shape.elements();
    data += weights::array_bytes(array.values);
  }
  std::vector<std::pair<std::string, std::string>> dicts;
  for (const auto& [part, items] : parts) dicts.emplace_back(part, weights::pickle_dict(items));
  return weights::zip_file(
      {{"m/data.pkl", weights::pickle_file(weights::pickle_dict(dicts))}, {"m/data/0", data}});
}

inline weights::Checkpoint open_checkpoint(const std::vector<StoredArray>& arrays) {
  const TemporaryFolder folder;
  weights::Checkpoint checkpoint = weights::Checkpoint::open(folder.write("m.pth", checkpoint_file(arrays)));
  weights::normalise_kokoro_names(checkpoint);
  return checkpoint;
}

}  // namespace shoal::kokoro
