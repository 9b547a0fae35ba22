#include "ops/cuda_backend.h"
#include "ops/no_cuda/unavailable.h"

namespace shoal::ops::cuda {

DeviceSpeed measure_device_speed(Context&) { unavailable("measure_device_speed"); }

}  // namespace shoal::ops::cuda
