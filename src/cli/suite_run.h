// `shoal bench report` without folders: the suite on this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/engine_settings.h"

namespace shoal::cli {

struct SuiteOptions {
  std::vector<std::string> configurations;  // empty: those that this machine and model have
  std::vector<std::string> texts;           // of the usual ones; empty: all
  int samples = 10, batch = 20, warm_up = 3;
  uint64_t seed = 1;
  std::string folder, output, json;  // output: one more copy of the report
  EngineSettings settings;
};

// Prints as it goes, writes the folder of the run, its report and, if asked, the results as one file. Throws
// Error: invalid_argument naming the option; already_exists; io; unsupported (`output` in a program without
// the page; a configuration that was asked for and does not exist here); whatever the engine throws;
// cancelled.
void run_suite(const SuiteOptions& options);

}  // namespace shoal::cli
