// What every subcommand that computes needs: threads, workspace, context.
#pragma once

#include <string>

#include "base/thread_team.h"
#include "cli/engine_settings.h"
#include "ops/context.h"
#include "tensor/workspace.h"

namespace CLI {
class App;
}

namespace shoal::cli {

// --device and --threads.
class ComputeOptions {
 public:
  void add_to(CLI::App& command) { settings_.add_to(command, {"device", "threads"}); }
  // How many threads the settings ask for; 0: every CPU this process may use. Throws Error as
  // resolve_settings does, and unsupported for a device that this version cannot compute on.
  int threads() const;

 private:
  EngineSettings settings_;
};

// Settings of commands that have their own options for them: what the option said, or the environment and the
// file where it is empty. Throw Error as resolve_settings does.
std::string chosen_precision(const std::string& option);  // "auto", "float32", "bfloat16"
std::string chosen_model(const std::string& option);      // empty: the built-in voice

// Owns the team and the workspace; the context points into it, so it stays where it was made.
class ComputeSession {
 public:
  explicit ComputeSession(const ComputeOptions& options);
  ComputeSession(const ComputeSession&) = delete;
  ComputeSession& operator=(const ComputeSession&) = delete;

  ThreadTeam& team() { return team_; }
  ops::Context& context() { return context_; }

 private:
  ThreadTeam team_;
  Workspace workspace_;
  ops::Context context_;
};

}  // namespace shoal::cli
