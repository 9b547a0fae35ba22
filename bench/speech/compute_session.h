// What measuring without an engine needs: threads, a device, a context.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/thread_team.h"
#include "ops/context.h"
#include "ops/execution.h"
#include "shoal/engine_config.h"

namespace shoal::bench {

// A team and a device. The context points into it, so it must not move.
class ComputeSession {
 public:
  // By device, threads and cuda_graphs of the configuration. Throws Error as ops::choose_device and
  // ops::Execution do.
  explicit ComputeSession(const EngineConfig& config);
  ComputeSession(const ComputeSession&) = delete;
  ComputeSession& operator=(const ComputeSession&) = delete;

  Device device() const { return device_; }
  // The device as a setting: what auto became.
  std::string device_setting() const;
  ops::Context& context() { return execution_.context(); }

 private:
  Device device_;
  ThreadTeam team_;
  ops::Execution execution_;
};

// Free bytes on the device of this setting; absent where CPU threads compute. Logs no warnings about the
// choice. Throws the Errors of ops::choose_device.
std::optional<int64_t> free_device_memory(const std::string& device_setting);

}  // namespace shoal::bench
