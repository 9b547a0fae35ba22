// Speaks the texts of a suite in one configuration.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/suite/configuration.h"
#include "bench/suite/configuration_figures.h"

namespace shoal::suite {

struct NamedText {
  std::string name, text;
};

// English of 25, 165 and 310 characters or so: "short", "medium", "long".
std::vector<NamedText> usual_texts();

struct SuitePlan {
  int samples = 10;  // of each text
  int batch = 20;    // requests in a row, texts in turn; 0: none
  int warm_up = 3;   // of the first text
  uint64_t seed = 1;
  std::vector<NamedText> texts;
  double began_s = 0;  // on bench::now_s()
};

struct SuiteWatch {
  std::function<bool()> interrupted;  // asked before each request; true: Error(cancelled)
  std::function<void(double fraction, const std::string& what)> on_progress;
  std::function<void(const Spoken&)> on_spoken;
};

// Loads, speaks one request after the other, and unloads. Throws Error: whatever loading and speaking throw;
// cancelled.
ConfigurationFigures speak(const Configuration& configuration, const SuitePlan& plan,
                           const SuiteWatch& watch);

}  // namespace shoal::suite
