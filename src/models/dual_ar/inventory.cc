#include "models/dual_ar/inventory.h"

#include <algorithm>
#include <string>

#include "models/dual_ar/bind.h"

namespace shoal::dual_ar {
namespace {

std::string part_of(const std::string& name) {
  if (name.starts_with("layers.") || name == "norm.weight") return "slow layers";
  if (name.starts_with("fast_layers.") || name.starts_with("fast_norm") ||
      name.starts_with("fast_project_in"))
    return "fast layers";
  if (name.starts_with("fast_")) return "fast embedding and head";
  return name == "output.weight" ? "head" : "embeddings";
}

// Writes down what the binder asks for.
class Recorder final : public TensorSource {
 public:
  bool names_only() const override { return true; }
  bool contains(std::string_view) override { return false; }
  TensorView get(const std::string& name, const Shape& shape) override {
    const auto same = [&](const RequiredTensor& tensor) { return tensor.name == name; };
    if (std::none_of(tensors.begin(), tensors.end(), same)) tensors.push_back({name, shape, part_of(name)});
    return TensorView(nullptr, DType::bf16, shape);
  }
  void release() override {}

  std::vector<RequiredTensor> tensors;
};

}  // namespace

std::vector<RequiredTensor> required_tensors(const Config& config) {
  Recorder recorder;
  ThreadTeam team(1);
  Workspace workspace;
  ops::Context ctx{.device = {}, .team = &team, .workspace = &workspace, .stream = nullptr};
  bind(recorder, config, ctx, {});
  return std::move(recorder.tensors);
}

}  // namespace shoal::dual_ar
