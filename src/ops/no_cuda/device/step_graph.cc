// Steps without CUDA graphs: bodies are called, and both sides of a block are the same memory.
#include "ops/step_graph.h"

#include <cstring>

#include "ops/no_cuda/unavailable.h"

namespace shoal::ops {

struct StepGraphs::Recording {};

StepGraphs::StepGraphs() = default;
StepGraphs::~StepGraphs() = default;

int64_t StepGraphs::count() const { return static_cast<int64_t>(recordings_.size()); }

void StepGraphs::clear() { recordings_.clear(); }

void run_step(Context& ctx, const StepKey&, FunctionRef<void()> body) {
  if (ctx.device.kind == DeviceKind::cuda) cuda::unavailable("run_step");
  body();
}

StepBlock::StepBlock(Context& ctx, int64_t bytes) : where_(ctx.device) {
  if (where_.kind == DeviceKind::cuda) cuda::unavailable("step block");
  host_ = Buffer(bytes, where_);
  std::memset(host_.data(), 0, static_cast<size_t>(bytes));
}

TensorView StepBlock::device(int64_t offset, DType dtype, Shape shape) const {
  const TensorView view(host() + offset, dtype, shape, where_);
  CHECK(offset >= 0 && offset % 16 == 0 && offset + view.bytes() <= bytes(), "step block: ", view.bytes(),
        " bytes at ", offset, " of ", bytes());
  return view;
}

void StepBlock::copy_to_device(Context&, int64_t count) const {
  CHECK(count >= 0 && count <= bytes(), "step block: ", count, " bytes of ", bytes());
}

void StepBlock::copy_to_host(Context& ctx, int64_t count) const { copy_to_device(ctx, count); }

}  // namespace shoal::ops
