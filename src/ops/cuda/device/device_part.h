// A part of a GPU's multiprocessors for a stream of its own: a green context of the driver (CUDA 12.5).
#pragma once

#include <cuda.h>
#include <memory>
#include <optional>
#include <type_traits>

#include "ops/cuda/device/handles.h"
#include "ops/stream.h"

namespace shoal::ops::cuda {

struct ReleasePart {
  void operator()(CUgreenCtx context) const;
};

// Work given to `stream` runs on these multiprocessors alone, whichever context is current.
struct PartOfDevice {
  std::unique_ptr<std::remove_pointer_t<CUgreenCtx>, ReleasePart> context;
  StreamHandle stream;  // dies first
  int multiprocessors = 0;
};

// Absent where the driver has no green contexts or the GPU cannot be cut there. The device must be current.
// priority: as cudaStreamCreateWithPriority takes it.
std::optional<PartOfDevice> part_of_device(int device, DevicePart part, int priority);

}  // namespace shoal::ops::cuda
