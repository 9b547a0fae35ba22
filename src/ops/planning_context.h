// What models are bound in when only sizes matter: those of weights (weights::NamesOnly), and of what is
// taken of a workspace.
#pragma once

#include "base/thread_team.h"
#include "ops/context.h"

namespace shoal::ops {

// No stream and no memory: nothing can be computed in it. The device need not be there.
class PlanningContext {
 public:
  explicit PlanningContext(Device device = {}) : workspace_(Workspace::counting(device)) {
    context_ = {.device = device, .team = &team_, .workspace = &workspace_};
  }
  PlanningContext(const PlanningContext&) = delete;
  PlanningContext& operator=(const PlanningContext&) = delete;

  Context& context() { return context_; }

 private:
  ThreadTeam team_{1};
  Workspace workspace_;
  Context context_;
};

}  // namespace shoal::ops
