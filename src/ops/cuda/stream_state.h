// What stands behind a Stream (stream.h) on a CUDA device.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <unordered_map>

#include "ops/context.h"
#include "ops/stream.h"

namespace shoal::ops::cuda {

class StreamState final : public Stream {
 public:
  StreamState(int device, StreamPriority priority);
  ~StreamState() override;

  cudaStream_t stream() const { return stream_; }
  int device() const { return device_; }
  int multiprocessors() const { return multiprocessors_; }
  // Compute capability times ten: 80, 89, 90, 100, 120.
  int architecture() const { return architecture_; }
  bool can_start_early() const { return architecture_ >= 90; }
  // Raises a kernel's limit of dynamic shared memory; remembered, so that it costs nothing again.
  void allow_shared(const void* kernel, size_t bytes);
  // Page-locked memory for an upload: the caller writes it and enqueues its copy before it asks again. Waits when
  // what stood there has not been copied yet. Not to be used while a graph is recorded.
  void* stage(int64_t bytes);

 private:
  static constexpr int kHalves = 2;
  void enter_half(int half);

  int device_ = 0, multiprocessors_ = 0, architecture_ = 0;
  cudaStream_t stream_ = nullptr;
  std::unordered_map<const void*, size_t> shared_;
  // Two halves in turn; an event tells when the copies of a half are done.
  struct Half {
    char* memory = nullptr;
    int64_t bytes = 0;
    cudaEvent_t copied = nullptr;
  } halves_[kHalves];
  int half_ = 0;
  int64_t used_ = 0;
};

StreamState& state_of(const Context& ctx);

}  // namespace shoal::ops::cuda
