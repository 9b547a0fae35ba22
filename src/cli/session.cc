#include "cli/session.h"

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/environment.h"
#include "ops/cuda_devices.h"

namespace shoal::cli {
namespace {

int checked_threads(const ComputeOptions& options) {
  options.check();
  return options.threads;
}

}  // namespace

void ComputeOptions::add_to(CLI::App& command) {
  command.add_option("--device", device,
                     "auto or cpu (this build has no GPU backend); default: $SHOAL_DEVICE, or auto");
  command.add_option("--threads", threads, "CPU threads; 0 uses every CPU this process may run on")
      ->envname("SHOAL_THREADS")
      ->capture_default_str();
}

void ComputeOptions::check() const {
  const std::string wanted =
      device.empty() ? from_environment("SHOAL_DEVICE", "S1_MINI_DEVICE").value_or("auto") : device;
  if (wanted == "mps") fail(ErrorCode::unsupported, "device: Apple GPUs are not supported; use cpu");
  if (wanted.starts_with("cuda")) {
    const std::vector<ops::CudaDevice> devices = ops::cuda_devices();
    fail(ErrorCode::unsupported, "device: this version computes on the CPU only, not with CUDA",
         devices.empty() ? "" : concat(" (it sees ", devices[0].name, ")"), "; use cpu");
  }
  if (wanted != "auto" && wanted != "cpu")
    fail(ErrorCode::invalid_argument, "device: expected auto or cpu, got \"", wanted, "\"");
  if (threads < 0 || threads > 1024)
    fail(ErrorCode::invalid_argument, "threads: expected 0 to 1024, got ", threads);
}

std::string chosen_precision(const std::string& option) {
  if (!option.empty()) return option;
  return from_environment("SHOAL_PRECISION", "S1_MINI_PRECISION").value_or("auto");
}

ComputeSession::ComputeSession(const ComputeOptions& options)
    : team_(checked_threads(options)),
      context_{.device = {}, .team = &team_, .workspace = &workspace_, .stream = nullptr} {}

}  // namespace shoal::cli
