#include "cli/model_report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace shoal::cli {
namespace {

using nlohmann::ordered_json;

void print(const std::vector<ReportLine>& lines) {
  for (const auto& [name, text] : lines) std::printf("%s: %s\n", name.c_str(), text.c_str());
}

std::string shape_of(const TensorReport& tensor) {
  std::string text;
  for (const int64_t size : tensor.shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

void print(const CheckpointReport& report, bool with_tensors) {
  std::printf("%s: %s, %zu tensors, %.1f MB on disk\n", report.name.c_str(), report.path.c_str(),
              report.tensors.size(), static_cast<double>(report.file_bytes) / 1e6);
  for (const PartReport& part : report.parts)
    std::printf("  %-28s %12lld parameters %10.1f MB in memory\n", part.name.c_str(),
                static_cast<long long>(part.parameters), static_cast<double>(part.bytes) / 1e6);
  if (report.unused_tensors > 0)
    std::printf("  %lld tensors are not used by this model\n", static_cast<long long>(report.unused_tensors));
  for (const std::string& problem : report.problems) std::printf("  PROBLEM %s\n", problem.c_str());
  if (!with_tensors) return;
  for (const TensorReport& t : report.tensors)
    std::printf("  %-80s %-5s %s\n", t.name.c_str(), t.dtype.c_str(), shape_of(t).c_str());
}

ordered_json json_of(const CheckpointReport& report, bool with_tensors) {
  ordered_json parts = ordered_json::object();
  for (const PartReport& part : report.parts)
    parts[part.name] = {{"parameters", part.parameters}, {"bytes", part.bytes}};
  ordered_json json = {
      {"file", report.path}, {"file_bytes", report.file_bytes},         {"tensors", report.tensors.size()},
      {"parts", parts},      {"unused_tensors", report.unused_tensors}, {"problems", report.problems}};
  if (!with_tensors) return json;
  for (const TensorReport& t : report.tensors)
    json["tensor_list"].push_back(
        {{"name", t.name}, {"dtype", t.dtype}, {"shape", t.shape}, {"bytes", t.bytes}});
  return json;
}

// "language model" -> "language_model"
std::string json_key(std::string name) {
  std::ranges::replace(name, ' ', '_');
  return name;
}

}  // namespace

void print_report(const ModelReport& report, bool with_tensors) {
  print(report.configuration);
  for (const CheckpointReport& checkpoint : report.checkpoints) print(checkpoint, with_tensors);
  print(report.remarks);
}

ordered_json report_json(const ModelReport& report, bool with_tensors) {
  ordered_json json = {{"dir", report.dir}, {"family", report.family}, {"precision", report.precision}};
  for (const CheckpointReport& checkpoint : report.checkpoints)
    json[json_key(checkpoint.name)] = json_of(checkpoint, with_tensors);
  for (const auto& [name, value] : report.values)
    std::visit([&](const auto& held) { json[name] = held; }, value);
  return json;
}

}  // namespace shoal::cli
