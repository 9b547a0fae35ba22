#include "models/dual_ar/inventory.h"

#include <string>
#include <string_view>

#include "models/dual_ar/bind.h"
#include "ops/planning_context.h"

namespace shoal::dual_ar {
namespace {

std::string part_of(std::string_view name) {
  if (name.starts_with("layers.") || name == "norm.weight") return "slow layers";
  if (name.starts_with("fast_layers.") || name.starts_with("fast_norm") ||
      name.starts_with("fast_project_in"))
    return "fast layers";
  if (name.starts_with("fast_")) return "fast embedding and head";
  return name == "output.weight" ? "head" : "embeddings";
}

}  // namespace

std::vector<RequiredTensor> required_tensors(const Config& config) {
  weights::NamesOnly names(part_of);
  ops::PlanningContext planning;
  bind(names, config, planning.context(), {});
  return names.take();
}

std::vector<RequiredTensor> layer_matrices(const Config& config) {
  std::vector<RequiredTensor> tensors = required_tensors(config);
  std::erase_if(tensors, [](const RequiredTensor& tensor) {
    const bool of_layer = tensor.name.starts_with("layers.") || tensor.name.starts_with("fast_layers.");
    return !of_layer || tensor.shape.rank() != 2;
  });
  return tensors;
}

}  // namespace shoal::dual_ar
