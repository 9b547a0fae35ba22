// What stands behind a Stream (stream.h) on a CUDA device.
#pragma once

#include <cstdint>
#include <cuda_runtime.h>
#include <memory>
#include <optional>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "ops/context.h"
#include "ops/cuda/device/device_part.h"
#include "ops/stream.h"
#include "tensor/tensor.h"

namespace shoal::ops::cuda {

// What the choice of kernels depends on; by itself, an H200's.
struct DeviceFacts {
  int multiprocessors = 132;
  int architecture = 90;              // compute capability times ten: 80, 89, 90, 100, 120
  int most_shared_bytes = 227 << 10;  // of a block
  static DeviceFacts of(int device);
};

class StreamState final : public Stream {
 public:
  struct Planning {};

  // The most that stage() gives in one piece.
  static constexpr int64_t kStageBytes = int64_t{1} << 20;

  StreamState(int device, StreamPriority priority, DevicePart part);
  // Without a stream: only for launches that are not made (launch.cuh).
  StreamState(Planning, int device);
  ~StreamState() override;

  bool has_part() const override { return part_.has_value(); }
  void use(Share share) override;
  Share share() const { return share_; }

  cudaStream_t stream() const { return (share_ == Share::part ? part_->stream : stream_).get(); }
  int device() const { return device_; }
  // Of the share that it uses.
  int multiprocessors() const {
    return share_ == Share::part ? part_->multiprocessors : facts_.multiprocessors;
  }
  int architecture() const { return facts_.architecture; }
  int most_shared_bytes() const { return facts_.most_shared_bytes; }
  // Both for launch() alone. Whether the next kernel may start before the one ahead of it has ended; asked
  // once for each.
  bool can_start_early() { return facts_.architecture >= 90 && !std::exchange(holds_next_, false); }
  void hold_next() { holds_next_ = true; }
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
  // An event behind everything given to the stream. Not inside run_step.
  std::shared_ptr<std::remove_pointer_t<cudaEvent_t>> mark();
  // A stream for copies beside this one, which goes on when the event has come.
  cudaStream_t copies_after(cudaEvent_t event);

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

  int device_ = 0;
  DeviceFacts facts_;
  bool holds_next_ = false;
  bool in_step_ = false;
  std::unordered_set<const void*> prepared_;
  Half halves_[kHalves];
  int half_ = 0;
  int64_t used_ = 0;
  Tensor counters_;               // i32 [kCounters]
  StreamHandle stream_, copies_;  // copies_: made when it is first asked for
  std::optional<PartOfDevice> part_;
  Share share_ = Share::whole;
};

// The stream of a context; its device is made current for the calling thread.
StreamState& state_of(const Context& ctx);

}  // namespace shoal::ops::cuda
