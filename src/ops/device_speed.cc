#include "ops/device_speed.h"

#include "ops/cuda_backend.h"

namespace shoal::ops {

std::optional<DeviceSpeed> measure_device_speed(Context& ctx) {
  if (on_cpu(ctx)) return {};
  return cuda::measure_device_speed(ctx);
}

}  // namespace shoal::ops
