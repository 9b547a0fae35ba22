// An order of execution on a GPU.
#pragma once

#include <memory>

#include "ops/context.h"
#include "tensor/tensor.h"

namespace shoal::ops {

// Whose blocks a GPU starts first: those of higher priority. Where it has two levels, low is normal.
enum class StreamPriority : uint8_t { low, normal, high };

// A cut through a GPU's multiprocessors, and the side of it that is a stream's part. Two streams with the two
// sides of a cut work beside each other; otherwise their kernels take turns (docs/GPU.md).
enum class Side : uint8_t { first, rest };
struct DevicePart {
  // Multiprocessors on the first side, rounded up to what the GPU can cut (Hopper: a multiple of 8). 0: the
  // stream has no part.
  int multiprocessors = 0;
  Side side = Side::first;
};

// The multiprocessors that work is given.
enum class Share : uint8_t { whole, part };

// A CUDA stream with page-locked memory for pending uploads, and the facts about the device that kernels need
// (cuda/device/stream_state.h). Used by one thread at a time. Its destructor waits for its work.
class Stream {
 public:
  // Null for the CPU. A part that the GPU or its driver cannot give is none (has_part). Throws Error:
  // unavailable (no such device, or this build has no CUDA), resource_exhausted.
  static std::unique_ptr<Stream> create(Device device, StreamPriority priority = StreamPriority::normal,
                                        DevicePart part = {});
  // Of a planning context: it runs nothing, and has the facts alone. Where the device is not there, they are
  // those of an H200. Null for the CPU. Throws Error(unavailable) in a build without CUDA.
  static std::unique_ptr<Stream> planning(Device device);
  virtual ~Stream() = default;

  virtual bool has_part() const = 0;
  // What the stream is given from now on runs on all multiprocessors (as after create) or on its part, if it
  // has one. The bits of results do not depend on it. Waits for what it was given before. Not inside
  // run_step.
  virtual void use(Share share) = 0;
};

// Of the context's stream, where it has one.
inline void use_share(const Context& ctx, Share share) {
  if (ctx.stream) ctx.stream->use(share);
}

}  // namespace shoal::ops
