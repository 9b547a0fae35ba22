#include "cli/memory_table.h"

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/session.h"
#include "shoal/model.h"

namespace shoal::cli {
namespace {

using nlohmann::ordered_json;

ordered_json json_of(const MemoryEstimate& estimate) {
  ordered_json report = {{"device", estimate.device}, {"precision", estimate.precision}};
  for (const auto& [name, value] : estimate.figures) report[name] = value;
  ordered_json& parts = report["bytes"] = ordered_json::object();
  for (const MemoryPart& part : estimate.parts) parts[part.name] = part.bytes;
  report["total_bytes"] = estimate.total_bytes();
  report["available_bytes"] = estimate.available_bytes;
  report["fits"] = estimate.fits();
  return report;
}

void print_row(const char* name, int64_t bytes) {
  std::printf("  %-28s %10.1f MB\n", name, static_cast<double>(bytes) / 1e6);
}

void print(const MemoryEstimate& estimate) {
  std::printf("memory on %s, %s, %s\n", estimate.device.c_str(), estimate.precision.c_str(),
              estimate.capacity.c_str());
  for (const MemoryPart& part : estimate.parts) print_row(part.name.c_str(), part.bytes);
  print_row("together", estimate.total_bytes());
  print_row("free now", estimate.available_bytes);
  print_row("left", estimate.available_bytes - estimate.total_bytes());
  std::printf("  %s\n", estimate.remark.c_str());
}

}  // namespace

void print_memory(const MemoryTableOptions& options, const EngineSettings& settings) {
  EngineConfig config = settings.resolve().config;
  config.model = options.dir.empty() ? config.model : options.dir;
  config.precision = parse_precision(chosen_precision(options.precision));
  const MemoryEstimate estimate = estimate_memory(config);
  if (options.json)
    std::cout << json_of(estimate).dump(1) << std::endl;
  else
    print(estimate);
  std::fflush(stdout);
  estimate.check();
}

}  // namespace shoal::cli
