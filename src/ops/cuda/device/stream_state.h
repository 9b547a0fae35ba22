// What stands behind a Stream (stream.h) on a CUDA device.
#pragma once

#include <cstdint>
#include <cuda_runtime.h>
#include <memory>
#include <type_traits>
#include <unordered_set>

#include "ops/context.h"
#include "ops/stream.h"
#include "tensor/tensor.h"

namespace shoal::ops::cuda {

// Owners of the runtime's handles. Nobody could do anything about an error when one is given back.
template <auto kDestroy>
struct Destroy {
  template <typename T>
  void operator()(T* handle) const {
    if (kDestroy(handle) != cudaSuccess) cudaGetLastError();
  }
};
using StreamHandle = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Destroy<cudaStreamDestroy>>;
using EventHandle = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy<cudaEventDestroy>>;

class StreamState final : public Stream {
 public:
  // The most that stage() gives in one piece.
  static constexpr int64_t kStageBytes = int64_t{1} << 20;

  StreamState(int device, StreamPriority priority);
  ~StreamState() override;

  cudaStream_t stream() const { return stream_.get(); }
  int device() const { return device_; }
  int multiprocessors() const { return multiprocessors_; }
  // Compute capability times ten: 80, 89, 90, 100, 120.
  int architecture() const { return architecture_; }
  int most_shared_bytes() const { return most_shared_bytes_; }  // of a block
  bool can_start_early() const { return architecture_ >= 90; }
  // Sets up a kernel the first time it is started: it may have all of an SM's shared memory, and every kernel
  // divides an SM's memory alike, or the next one could not start on an SM before the last has left it. These
  // are attributes of the kernel for every stream, so they are the same whoever sets them.
  void prepare(const void* kernel);
  // Page-locked memory for an upload of at most kStageBytes: the caller writes it and enqueues its copy
  // before it asks again. Waits when what stood there has not been copied yet. Not inside run_step.
  void* stage(int64_t bytes);
  // Zero before and after every kernel: where the blocks of one tell each other that they have come.
  static constexpr int64_t kCounters = 1024;
  unsigned* counters() const { return static_cast<unsigned*>(counters_.view().data()); }
  // Waits for everything given to the stream. Not inside run_step.
  void synchronize();

  // Alive while run_step calls a body, which must not stage or wait, whether it is recorded or not.
  class Step {
   public:
    explicit Step(StreamState& stream);
    ~Step() { stream_.in_step_ = false; }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    StreamState& stream_;
  };

 private:
  // Two halves in turn; an event tells when the copies of a half are done.
  struct Half {
    Buffer memory;
    EventHandle copied;
  };
  static constexpr int kHalves = 2;
  void enter_next_half();

  int device_ = 0, multiprocessors_ = 0, architecture_ = 0, most_shared_bytes_ = 0;
  bool in_step_ = false;
  std::unordered_set<const void*> prepared_;
  Half halves_[kHalves];
  int half_ = 0;
  int64_t used_ = 0;
  Tensor counters_;  // i32 [kCounters]
  StreamHandle stream_;
};

// The stream of a context; its device is made current for the calling thread.
StreamState& state_of(const Context& ctx);

}  // namespace shoal::ops::cuda
