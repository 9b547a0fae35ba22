#include "cli/session.h"

#include "base/error.h"
#include "ops/device_choice.h"
#include "runtime/engine/useful_threads.h"

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

ComputeSession::ComputeSession(const EngineConfig& config)
    : device_(ops::choose_device(config.device)),
      team_(runtime::useful_threads(config.threads, ThreadTeam::available_cpus())),
      execution_(device_, team_, {.record = config.cuda_graphs}) {}

std::string ComputeSession::device_setting() const {
  return device_.kind == DeviceKind::cpu ? "cpu" : concat("cuda:", device_.index);
}

}  // namespace shoal::cli
