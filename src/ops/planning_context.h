// What models are bound in, and their steps run in, when only sizes matter: those of weights
// (weights::NamesOnly), and of what is taken of a workspace.
#pragma once

#include <cstdint>
#include <memory>

#include "base/thread_team.h"
#include "ops/context.h"
#include "ops/stream.h"

namespace shoal::ops {

// Nothing is computed in it, and what steps work on has no memory, except what the host writes: ops run as
// they are, and take their scratch, but start no kernel. The device need not be there (Stream::planning).
// threads: of the team whose scratch a CPU's ops take.
class PlanningContext {
 public:
  explicit PlanningContext(Device device = {}, int threads = 1)
      : team_(ThreadTeam::idle(threads)),
        workspace_(Workspace::counting(device)),
        stream_(Stream::planning(device)) {
    context_ = {
        .device = device, .team = &team_, .workspace = &workspace_, .stream = stream_.get(), .host = &host_};
  }
  PlanningContext(const PlanningContext&) = delete;
  PlanningContext& operator=(const PlanningContext&) = delete;

  Context& context() { return context_; }
  // What has been taken at most.
  int64_t peak_bytes() const { return workspace_.peak_bytes(); }

 private:
  ThreadTeam team_;
  Workspace workspace_, host_;
  std::unique_ptr<Stream> stream_;
  Context context_;
};

}  // namespace shoal::ops
