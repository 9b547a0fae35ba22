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

std::string in_words(const FormatNames& formats) {
  std::string words = formats.precision;
  const auto add = [&](const std::string& format, const char* of) {
    if (!format.empty() && format != formats.precision) words += ", " + format + of;
  };
  add(formats.weights, " weights");
  add(formats.kv_precision, " keys and values");
  add(formats.codec_weights, " codec");
  return words;
}

}  // namespace shoal
