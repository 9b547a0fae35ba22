#include "models/kokoro/inventory.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "base/error.h"
#include "models/kokoro/loader.h"
#include "models/kokoro/network.h"
#include "ops/planning_context.h"

namespace shoal::kokoro {
namespace {

// Whether `name` is a weight or bias of a norm that `required` modulates by a style.
bool is_own_norm(std::string_view name, const std::unordered_set<std::string>& required) {
  for (const std::string_view ending : {".norm.weight", ".norm.bias"}) {
    if (!name.ends_with(ending)) continue;
    return required.contains(concat(name.substr(0, name.size() - ending.size()), ".fc.weight"));
  }
  return false;
}

std::vector<std::string> problems_of(const weights::Checkpoint& checkpoint, const Config& config) {
  std::vector<std::string> problems;
  std::unordered_set<std::string> known;
  for (const RequiredTensor& tensor : required_tensors(config)) {
    auto [names, problem] = tensor.stored_in(checkpoint);
    if (!problem.empty()) problems.push_back(std::move(problem));
    known.insert(names.begin(), names.end());
  }
  for (const RequiredTensor& tensor : unused_tensors(config)) known.insert(tensor.name);
  for (const weights::StoredTensor& tensor : checkpoint.tensors()) {
    if (!known.contains(tensor.name) && !is_own_norm(tensor.name, known))
      problems.push_back(tensor.name + " is not known");
  }
  return problems;
}

}  // namespace

std::vector<RequiredTensor> required_tensors(const Config& config) {
  weights::NamesOnly names([](std::string_view name) { return std::string(name.substr(0, name.find('.'))); });
  ops::PlanningContext planning;
  Loader loader(names, planning.context(), DType::f32);
  const Network network(loader, loader, config);  // asks for all of its tensors
  return names.take();
}

std::vector<RequiredTensor> unused_tensors(const Config& config) {
  return {{"bert.pooler.weight", {config.bert_dim, config.bert_dim}, "bert"},
          {"bert.pooler.bias", {config.bert_dim}, "bert"}};
}

void check_tensors(const weights::Checkpoint& checkpoint, const Config& config) {
  constexpr size_t kShown = 5;
  const std::vector<std::string> problems = problems_of(checkpoint, config);
  if (problems.empty()) return;
  std::string list;
  for (size_t i = 0; i < std::min(problems.size(), kShown); ++i)
    list += concat(i == 0 ? "" : "; ", "tensor ", problems[i]);
  if (problems.size() > kShown) list += concat("; and ", problems.size() - kShown, " more");
  fail(ErrorCode::corrupt_file, checkpoint.path(), ": ", list);
}

}  // namespace shoal::kokoro
