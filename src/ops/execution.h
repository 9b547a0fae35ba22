// Owns the resources of a Context.
#pragma once

#include <memory>

#include "ops/context.h"
#include "ops/step_graph.h"
#include "ops/stream.h"

namespace shoal::ops {

// Scratch memory, a stream and CUDA graphs of one thread of execution. Used by one thread at a time.
class Execution {
 public:
  struct Options {
    StreamPriority priority = StreamPriority::normal;
    bool record = false;   // steps are recorded and replayed, where the device can
    DevicePart part = {};  // that the stream can use
  };
  // The team must outlive it. Throws Error: unavailable (no such device), resource_exhausted.
  Execution(Device device, ThreadTeam& team) : Execution(device, team, Options()) {}
  Execution(Device device, ThreadTeam& team, const Options& options)
      : workspace_(device), stream_(Stream::create(device, options.priority, options.part)) {
    context_ = {.device = device,
                .team = &team,
                .workspace = &workspace_,
                .stream = stream_.get(),
                .host = &host_,
                .graphs = options.record && device.kind == DeviceKind::cuda ? &graphs_ : nullptr};
  }
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  Context& context() { return context_; }
  bool has_part() const { return stream_ && stream_->has_part(); }
  // Steps that are recorded. Only the thread of execution may call this.
  int64_t recordings() const { return graphs_.count(); }
  // Bytes of the device's scratch memory. Only the thread of execution may call this.
  int64_t workspace_bytes() const { return workspace_.capacity_bytes(); }

 private:
  Workspace workspace_, host_;
  StepGraphs graphs_;
  std::unique_ptr<Stream> stream_;  // dies first: waits for the work on the memory above
  Context context_;
};

}  // namespace shoal::ops
