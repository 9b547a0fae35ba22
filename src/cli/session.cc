#include "cli/session.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "base/error.h"

namespace shoal::cli {
namespace {

int checked_threads(const ComputeOptions& options) {
  options.check();
  return options.threads;
}

// One setting under two names with different values is an error, never a guess.
std::string device_from_environment() {
  const char* ours = std::getenv("SHOAL_DEVICE");
  const char* older = std::getenv("S1_MINI_DEVICE");
  if (ours && older && std::string(ours) != older) {
    fail(ErrorCode::invalid_argument, "SHOAL_DEVICE is \"", ours,
         "\" but its older name S1_MINI_DEVICE is \"", older, "\"");
  }
  if (ours) return ours;
  return older ? older : "auto";
}

}  // namespace

void ComputeOptions::add_to(CLI::App& command) {
  command.add_option("--device", device, "auto or cpu (this build has no GPU backend)")->default_str("auto");
  command.add_option("--threads", threads, "CPU threads; 0 uses every CPU this process may run on")
      ->envname("SHOAL_THREADS")
      ->capture_default_str();
}

void ComputeOptions::check() const {
  const std::string wanted = device == "auto" ? device_from_environment() : device;
  if (wanted == "mps") fail(ErrorCode::unsupported, "device: Apple GPUs are not supported; use cpu");
  if (wanted.starts_with("cuda"))
    fail(ErrorCode::unsupported, "device: this build has no CUDA backend; use cpu");
  if (wanted != "auto" && wanted != "cpu")
    fail(ErrorCode::invalid_argument, "device: expected auto or cpu, got \"", wanted, "\"");
  if (threads < 0 || threads > 1024)
    fail(ErrorCode::invalid_argument, "threads: expected 0 to 1024, got ", threads);
}

ComputeSession::ComputeSession(const ComputeOptions& options)
    : team_(checked_threads(options)),
      context_{.device = {}, .team = &team_, .workspace = &workspace_, .stream = nullptr} {}

}  // namespace shoal::cli
