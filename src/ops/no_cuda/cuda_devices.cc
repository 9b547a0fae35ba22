#include "ops/cuda_devices.h"

namespace shoal::ops {

std::vector<CudaDevice> cuda_devices() { return {}; }

}  // namespace shoal::ops
