#include <algorithm>

#include "ops/cuda/device/launch.cuh"
#include "ops/step_graph.h"

namespace shoal::ops {
namespace {

using cuda::check;
using cuda::StreamState;
using GraphHandle = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, cuda::Destroy<cudaGraphDestroy>>;
// One that is running is freed when it is done.
using ExecutableHandle =
    std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, cuda::Destroy<cudaGraphExecDestroy>>;

// The scratch that a step finds: kernels keep addresses in it.
struct Scratch {
  const void* begin = nullptr;
  int64_t bytes = 0;
};

// Entering the outermost scope makes one block of what earlier steps took, which a recorded body must not do.
Scratch settled_scratch(Workspace& workspace) {
  CHECK(workspace.empty(), "run_step inside of a scope of the workspace");
  const Workspace::Scope scope(workspace);
  const void* const begin = workspace.alloc(DType::u8, {0}).data();
  return {begin, workspace.capacity_bytes()};
}

// Captures body's launches in a graph. Only this thread is restricted during the capture, so that other
// threads may allocate meanwhile.
GraphHandle record(const StreamState& stream, FunctionRef<void()> body) {
  check(cudaStreamBeginCapture(stream.stream(), cudaStreamCaptureModeThreadLocal), "recording a step");
  cudaGraph_t graph = nullptr;
  try {
    body();
  } catch (...) {
    if (cudaStreamEndCapture(stream.stream(), &graph) != cudaSuccess) cudaGetLastError();
    const GraphHandle unfinished(graph);
    throw;
  }
  const cudaError_t status = cudaStreamEndCapture(stream.stream(), &graph);
  GraphHandle recorded(graph);
  check(status, "recording a step");
  return recorded;
}

ExecutableHandle executable(const GraphHandle& graph) {
  cudaGraphExec_t made = nullptr;
  check(cudaGraphInstantiate(&made, graph.get(), 0), "preparing a recorded step");
  return ExecutableHandle(made);
}

}  // namespace

struct StepGraphs::Recording {
  int64_t needed = 0;           // bytes of workspace with which the body has run
  const void* begin = nullptr;  // where they began when it was recorded
  ExecutableHandle launches;    // null: it has run, and has not been recorded yet
};

StepGraphs::StepGraphs() = default;
StepGraphs::~StepGraphs() = default;

int64_t StepGraphs::count() const {
  return std::ranges::count_if(recordings_,
                               [](const auto& known) { return known.second && known.second->launches; });
}

void StepGraphs::clear() { recordings_.clear(); }

void run_step(Context& ctx, const StepKey& key, FunctionRef<void()> body) {
  if (ctx.device.kind == DeviceKind::cpu || !ctx.graphs) return body();
  StreamState& stream = cuda::state_of(ctx);
  const Scratch scratch = settled_scratch(*ctx.workspace);
  const StreamState::Step step(stream);
  std::unique_ptr<StepGraphs::Recording>& known = ctx.graphs->recordings_[{key, stream.share()}];
  if (!known || scratch.bytes < known->needed) {  // smaller: a merge of its blocks has failed meanwhile
    known.reset();
    body();
    known = std::make_unique<StepGraphs::Recording>();
    known->needed = ctx.workspace->capacity_bytes();
    return;
  }
  if (!known->launches || known->begin != scratch.begin) {
    known->launches = executable(record(stream, body));
    known->begin = scratch.begin;
  }
  check(cudaGraphLaunch(known->launches.get(), stream.stream()), "replaying a step");
}

}  // namespace shoal::ops
