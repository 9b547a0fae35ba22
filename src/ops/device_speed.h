// The measured peak speed of a GPU, as the ceiling for reported figures.
#pragma once

#include <optional>

#include "ops/context.h"

namespace shoal::ops {

struct DeviceSpeed {
  double read_bytes_per_s = 0;  // sums over memory far larger than the caches
  double bf16_flop_per_s = 0;   // matrix products (mma.sync) out of registers, with f32 sums
};

// The best of a few runs of each; uses a few GB of the device's memory for tens of milliseconds. Absent for
// the CPU, whose limits depend on its threads. Throws Error(resource_exhausted).
std::optional<DeviceSpeed> measure_device_speed(Context& ctx);

}  // namespace shoal::ops
