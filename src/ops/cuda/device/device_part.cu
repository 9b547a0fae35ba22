#include <cudaTypedefs.h>

#include "ops/cuda/device/device_part.h"
#include "ops/cuda/device/driver_function.h"

namespace shoal::ops::cuda {
namespace {

struct Driver {
  PFN_cuDeviceGetDevResource_v12040 resource_of;
  PFN_cuDevSmResourceSplitByCount_v12040 split;
  PFN_cuDevResourceGenerateDesc_v12040 describe;
  PFN_cuGreenCtxCreate_v12040 create;
  PFN_cuGreenCtxDestroy_v12040 destroy;
  PFN_cuGreenCtxStreamCreate_v12050 make_stream;

  bool complete() const { return resource_of && split && describe && create && destroy && make_stream; }
};

const Driver& driver() {
  static const Driver found{
      driver_function<PFN_cuDeviceGetDevResource_v12040>("cuDeviceGetDevResource", 12040),
      driver_function<PFN_cuDevSmResourceSplitByCount_v12040>("cuDevSmResourceSplitByCount", 12040),
      driver_function<PFN_cuDevResourceGenerateDesc_v12040>("cuDevResourceGenerateDesc", 12040),
      driver_function<PFN_cuGreenCtxCreate_v12040>("cuGreenCtxCreate", 12040),
      driver_function<PFN_cuGreenCtxDestroy_v12040>("cuGreenCtxDestroy", 12040),
      driver_function<PFN_cuGreenCtxStreamCreate_v12050>("cuGreenCtxStreamCreate", 12050)};
  return found;
}

// The multiprocessors of one side of the cut.
std::optional<CUdevResource> side_of(int device, DevicePart part) {
  CUdevResource all{}, first{}, rest{};
  unsigned groups = 1;
  if (driver().resource_of(device, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS ||
      driver().split(&first, &groups, &all, &rest, 0, static_cast<unsigned>(part.multiprocessors)) !=
          CUDA_SUCCESS ||
      groups != 1 || rest.type != CU_DEV_RESOURCE_TYPE_SM || rest.sm.smCount == 0)
    return std::nullopt;
  return part.side == Side::first ? first : rest;
}

}  // namespace

void ReleasePart::operator()(CUgreenCtx context) const { driver().destroy(context); }

std::optional<PartOfDevice> part_of_device(int device, DevicePart part, int priority) {
  if (part.multiprocessors <= 0 || !driver().complete()) return std::nullopt;
  std::optional<CUdevResource> side = side_of(device, part);
  CUdevResourceDesc described = nullptr;
  CUgreenCtx context = nullptr;
  if (!side || driver().describe(&described, &*side, 1) != CUDA_SUCCESS ||
      driver().create(&context, described, device, CU_GREEN_CTX_DEFAULT_STREAM) != CUDA_SUCCESS)
    return std::nullopt;
  PartOfDevice made;
  made.context.reset(context);
  made.multiprocessors = static_cast<int>(side->sm.smCount);
  CUstream stream = nullptr;
  if (driver().make_stream(&stream, context, CU_STREAM_NON_BLOCKING, priority) != CUDA_SUCCESS)
    return std::nullopt;
  made.stream.reset(stream);
  return made;
}

}  // namespace shoal::ops::cuda
