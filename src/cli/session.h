// What every subcommand that computes by itself needs: threads, a device, a context.
#pragma once

#include <string>

#include "base/thread_team.h"
#include "cli/engine_settings.h"
#include "ops/context.h"
#include "ops/execution.h"

namespace CLI {
class App;
}

namespace shoal::cli {

// Where and how to compute: --device, --threads, --cuda-graphs, --semantic-only.
class ComputeOptions {
 public:
  void add_to(CLI::App& command) {
    settings_.add_to(command, {"device", "threads", "cuda_graphs", "semantic_only"});
  }
  // The settings with what these options say. Throws Error as resolve_settings does.
  EngineConfig config() const { return settings_.resolve().config; }

 private:
  EngineSettings settings_;
};

// Settings of commands that have their own options for them: what the option said, or the environment and the
// file where it is empty. Throw Error as resolve_settings does.
std::string chosen_precision(const std::string& option);  // "auto", "float32", "bfloat16", "float16"
std::string chosen_model(const std::string& option);      // empty: the built-in voice

// A team and a device of its own. The context points into it, so it stays where it was made.
class ComputeSession {
 public:
  // Throws Error as ops::choose_device and ops::Execution do.
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

}  // namespace shoal::cli
