#include "ops/device_choice.h"

#include "base/error.h"
#include "ops/cuda_devices.h"

namespace shoal::ops {

Device choose_device(std::string_view name) {
  if (!name.starts_with("cuda")) return {};
  const std::vector<CudaDevice> devices = cuda_devices();
  fail(ErrorCode::unsupported, "device: this version computes on the CPU only, not with CUDA",
       devices.empty() ? "" : concat(" (it sees ", devices[0].name, ")"), "; use cpu");
}

}  // namespace shoal::ops
