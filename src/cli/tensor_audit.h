// A checkpoint's tensors beside those that its model asks for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "weights/checkpoint.h"

namespace shoal::cli {

// A checkpoint of a model folder, held against what its model asks for.
struct Audit {
  std::string part, path;
  int64_t file_bytes = 0;
  std::vector<weights::StoredTensor> tensors;
  std::vector<std::pair<std::string, int64_t>> elements;  // by part of the model
  std::vector<std::string> problems;                      // missing tensors, wrong shapes
  size_t unused = 0;                                      // tensors that no part of the model reads

  void count(const std::string& name, int64_t more) {
    const auto same = [&](const auto& entry) { return entry.first == name; };
    const auto entry = std::find_if(elements.begin(), elements.end(), same);
    if (entry == elements.end()) {
      elements.emplace_back(name, more);
    } else {
      entry->second += more;
    }
  }
  int64_t total_elements() const {
    int64_t total = 0;
    for (const auto& [name, count] : elements) total += count;
    return total;
  }
};

template <typename Required>
void hold_against(const weights::Checkpoint& checkpoint, const std::vector<Required>& required,
                  Audit& audit) {
  size_t used = 0;
  for (const Required& tensor : required) {
    const auto found = tensor.stored_in(checkpoint);
    used += found.names.size();
    if (!found.problem.empty()) audit.problems.push_back(found.problem);
    audit.count(tensor.part, tensor.shape.elements());
  }
  audit.tensors = checkpoint.tensors();
  audit.file_bytes = checkpoint.file_bytes();
  audit.unused = audit.tensors.size() - std::min(used, audit.tensors.size());
}

nlohmann::ordered_json json_of(const Audit& audit, int64_t bytes_per_element, bool with_tensors);
void print(const Audit& audit, int64_t bytes_per_element, bool with_tensors);

}  // namespace shoal::cli
