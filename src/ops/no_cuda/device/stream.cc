#include "ops/stream.h"

#include "ops/no_cuda/unavailable.h"

namespace shoal::ops {

std::unique_ptr<Stream> Stream::create(Device device, StreamPriority, DevicePart) { return planning(device); }

std::unique_ptr<Stream> Stream::planning(Device device) {
  if (device.kind == DeviceKind::cuda) cuda::unavailable("stream");
  return nullptr;
}

}  // namespace shoal::ops
