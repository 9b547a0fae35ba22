// Steps without CUDA graphs: bodies are called.
#include "ops/step_graph.h"

#include "ops/no_cuda/unavailable.h"

namespace shoal::ops {

struct StepGraphs::Recording {};

StepGraphs::StepGraphs() = default;
StepGraphs::~StepGraphs() = default;

int64_t StepGraphs::count() const { return static_cast<int64_t>(recordings_.size()); }

void StepGraphs::clear() { recordings_.clear(); }

void run_step(Context& ctx, const StepKey&, FunctionRef<void()> body) {
  if (!on_cpu(ctx)) cuda::unavailable("run_step");
  body();
}

}  // namespace shoal::ops
