// An order of execution on a GPU.
#pragma once

#include <memory>

#include "tensor/tensor.h"

namespace shoal::ops {

enum class StreamPriority : uint8_t { normal, high };

// What a CUDA stream of ours is: the stream, page-locked memory for uploads on their way, and what kernels
// need to know of the device (cuda/device/stream_state.h). Used by one thread at a time. Waits for its work
// when it dies.
class Stream {
 public:
  // Null for the CPU. Throws Error: unavailable (no such device, or this build has no CUDA),
  // resource_exhausted.
  static std::unique_ptr<Stream> create(Device device, StreamPriority priority = StreamPriority::normal);
  virtual ~Stream() = default;
};

}  // namespace shoal::ops
