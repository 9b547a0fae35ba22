#include "shoal/statistics.h"

#include <algorithm>

namespace shoal {

void Histogram::add(double value) {
  const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
  ++counts[static_cast<size_t>(bucket)];
  ++count;
  sum += value;
}

std::string_view name_of(EngineState state) {
  switch (state) {
    case EngineState::stopped:
      return "stopped";
    case EngineState::starting:
      return "starting";
    case EngineState::ready:
      return "ready";
    case EngineState::reloading:
      return "reloading";
    case EngineState::unloaded:
      return "unloaded";
    case EngineState::loading:
      return "loading";
    case EngineState::stopping:
      return "stopping";
  }
  return "stopped";
}

std::string formats_in_words(const Health& health) {
  std::string words = health.precision;
  if (health.weights != health.precision) words += ", " + health.weights + " weights";
  if (!health.kv_precision.empty() && health.kv_precision != health.precision)
    words += ", " + health.kv_precision + " keys and values";
  return words;
}

}  // namespace shoal
