#include "ops/cuda_devices.h"

#include "base/error.h"

namespace shoal::ops {

bool built_with_cuda() { return false; }

std::vector<CudaDevice> cuda_devices() { return {}; }

int64_t cuda_free_memory(int) { fail(ErrorCode::unavailable, "this build has no CUDA backend"); }

}  // namespace shoal::ops
