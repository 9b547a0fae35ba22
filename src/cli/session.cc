#include "cli/session.h"

#include "base/error.h"
#include "ops/device_choice.h"

namespace shoal::cli {
namespace {

EngineConfig config_with(const std::string& key, const std::string& option) {
  std::map<std::string, std::string> flags;
  if (!option.empty()) flags[key] = option;
  return resolve_settings(process_settings(std::move(flags), "")).config;
}

}  // namespace

int ComputeOptions::threads() const {
  const EngineConfig config = settings_.resolve().config;
  ops::choose_device(config.device);
  return config.threads;
}

std::string chosen_precision(const std::string& option) {
  return std::string(name_of(config_with("precision", option).precision));
}

std::string chosen_model(const std::string& option) { return config_with("model", option).model; }

ComputeSession::ComputeSession(const ComputeOptions& options)
    : team_(options.threads()),
      context_{.device = {}, .team = &team_, .workspace = &workspace_, .stream = nullptr} {}

}  // namespace shoal::cli
