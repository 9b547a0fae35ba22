#include "bench/speech/compute_session.h"

#include "ops/cuda_devices.h"
#include "ops/device_choice.h"
#include "ops/device_state.h"
#include "runtime/engine/useful_threads.h"

namespace shoal::bench {

ComputeSession::ComputeSession(const EngineConfig& config)
    : device_(ops::choose_device(config.device)),
      team_(runtime::useful_threads(config.threads, ThreadTeam::available_cpus())),
      execution_(device_, team_, {.record = config.cuda_graphs}) {}

std::string ComputeSession::device_setting() const { return ops::setting_of(device_); }

std::optional<int64_t> free_device_memory(const std::string& device_setting) {
  return ops::free_device_memory(
      ops::choose_device(device_setting, ops::cuda_devices(), ops::built_with_cuda()).device);
}

}  // namespace shoal::bench
