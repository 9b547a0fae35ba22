#include "cli/session.h"

#include "base/error.h"
#include "ops/cuda_devices.h"

namespace shoal::cli {
namespace {

void check_device(const std::string& device) {
  if (!device.starts_with("cuda")) return;
  const std::vector<ops::CudaDevice> devices = ops::cuda_devices();
  fail(ErrorCode::unsupported, "device: this version computes on the CPU only, not with CUDA",
       devices.empty() ? "" : concat(" (it sees ", devices[0].name, ")"), "; use cpu");
}

EngineConfig config_with(const std::string& key, const std::string& option) {
  std::map<std::string, std::string> flags;
  if (!option.empty()) flags[key] = option;
  return resolve_settings(process_settings(std::move(flags), "")).config;
}

}  // namespace

int ComputeOptions::threads() const {
  const EngineConfig config = settings_.resolve().config;
  check_device(config.device);
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
