#include "cli/tensor_audit.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace shoal::cli {

using nlohmann::ordered_json;

ordered_json json_of(const Audit& audit, int64_t bytes_per_element, bool with_tensors) {
  ordered_json parts = ordered_json::object();
  for (const auto& [name, count] : audit.elements)
    parts[name] = {{"parameters", count}, {"bytes", count * bytes_per_element}};
  ordered_json json = {
      {"file", audit.path}, {"file_bytes", audit.file_bytes}, {"tensors", audit.tensors.size()},
      {"parts", parts},     {"unused_tensors", audit.unused}, {"problems", audit.problems}};
  if (with_tensors) {
    for (const weights::StoredTensor& t : audit.tensors) {
      const auto dims = t.view.shape().dims();
      json["tensor_list"].push_back({{"name", t.name},
                                     {"dtype", name_of(t.view.dtype())},
                                     {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                                     {"bytes", t.view.bytes()}});
    }
  }
  return json;
}

void print(const Audit& audit, int64_t bytes_per_element, bool with_tensors) {
  std::printf("%s: %s, %zu tensors, %.1f MB on disk\n", audit.part.c_str(), audit.path.c_str(),
              audit.tensors.size(), static_cast<double>(audit.file_bytes) / 1e6);
  for (const auto& [name, count] : audit.elements) {
    std::printf("  %-28s %12lld parameters %10.1f MB in memory\n", name.c_str(),
                static_cast<long long>(count), static_cast<double>(count * bytes_per_element) / 1e6);
  }
  if (audit.unused > 0) std::printf("  %zu tensors are not used by this model\n", audit.unused);
  for (const std::string& problem : audit.problems) std::printf("  PROBLEM %s\n", problem.c_str());
  if (!with_tensors) return;
  for (const weights::StoredTensor& t : audit.tensors) {
    std::printf("  %-80s %-5s %s\n", t.name.c_str(), std::string(name_of(t.view.dtype())).c_str(),
                concat(t.view.shape()).c_str());
  }
}

}  // namespace shoal::cli
