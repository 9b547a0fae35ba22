// An order of execution on a GPU.
#pragma once

#include <memory>

#include "tensor/tensor.h"

namespace shoal::ops {

enum class StreamPriority : uint8_t { normal, high };

// A CUDA stream with page-locked memory for pending uploads, and the facts about the device that kernels need
// (cuda/device/stream_state.h). Used by one thread at a time. Its destructor waits for its work.
class Stream {
 public:
  // Null for the CPU. Throws Error: unavailable (no such device, or this build has no CUDA),
  // resource_exhausted.
  static std::unique_ptr<Stream> create(Device device, StreamPriority priority = StreamPriority::normal);
  // Of a planning context: it runs nothing, and has the facts alone. Where the device is not there, they are
  // those of an H200. Null for the CPU. Throws Error(unavailable) in a build without CUDA.
  static std::unique_ptr<Stream> planning(Device device);
  virtual ~Stream() = default;
};

}  // namespace shoal::ops
