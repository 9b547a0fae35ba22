// Checks on a running system that a device computes correctly.
#pragma once

#include "tensor/tensor.h"

namespace shoal::ops {

// This build has the CUDA backend and the machine a device for it.
bool gpu_available();

// A norm and a product on the device, against sums in double on the host: microseconds of work, with its own
// memory, stream and thread. Throws Error: internal for a wrong result, with the worst element;
// resource_exhausted, unavailable, and the errors of kernels.
void check_device(Device device);

}  // namespace shoal::ops
