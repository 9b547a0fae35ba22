#include "cli/session.h"

#include <map>

namespace shoal::cli {
namespace {

EngineConfig config_with(const std::string& key, const std::string& option) {
  std::map<std::string, std::string> flags;
  if (!option.empty()) flags[key] = option;
  return resolve_settings(process_settings(std::move(flags), "")).config;
}

}  // namespace

std::string chosen_precision(const std::string& option) {
  return std::string(name_of(config_with("precision", option).precision));
}

std::string chosen_model(const std::string& option) { return config_with("model", option).model; }

}  // namespace shoal::cli
