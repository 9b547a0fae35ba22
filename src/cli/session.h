// What every subcommand that computes needs: threads, workspace, context.
#pragma once

#include <string>

#include "base/thread_team.h"
#include "ops/context.h"
#include "tensor/workspace.h"

namespace CLI {
class App;
}

namespace shoal::cli {

// --device and --threads, with SHOAL_DEVICE (older: S1_MINI_DEVICE) and SHOAL_THREADS.
struct ComputeOptions {
  std::string device;  // auto, cpu; empty: the environment's, or auto
  int threads = 0;     // 0: every CPU this process may use

  void add_to(CLI::App& command);
  // Throws Error: unsupported (device), invalid_argument (device, threads).
  void check() const;
};

// What --precision said, or SHOAL_PRECISION (older: S1_MINI_PRECISION), or "auto".
std::string chosen_precision(const std::string& option);

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
