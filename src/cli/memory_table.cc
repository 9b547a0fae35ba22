#include "cli/memory_table.h"

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/session.h"
#include "report/model_json.h"
#include "shoal/model.h"

namespace shoal::cli {
namespace {

void print_row(const char* name, int64_t bytes) {
  std::printf("  %-28s %10.1f MB\n", name, static_cast<double>(bytes) / 1e6);
}

void print(const MemoryEstimate& estimate) {
  std::printf("memory on %s, %s, %s\n", estimate.device.c_str(), in_words(estimate.formats).c_str(),
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
    std::cout << nlohmann::ordered_json::parse(server::write_json(report::memory_json(estimate))).dump(1)
              << std::endl;
  else
    print(estimate);
  std::fflush(stdout);
  estimate.check();
}

}  // namespace shoal::cli
