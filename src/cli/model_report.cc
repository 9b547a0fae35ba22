#include "cli/model_report.h"

#include <cstdio>

namespace shoal::cli {
namespace {

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

}  // namespace

void print_report(const ModelReport& report, bool with_tensors) {
  print(report.configuration);
  for (const CheckpointReport& checkpoint : report.checkpoints) print(checkpoint, with_tensors);
  print(report.remarks);
}

}  // namespace shoal::cli
