// Copies between the host's memory and the device's. On the CPU nothing is copied.
#pragma once

#include <memory>
#include <span>

#include "ops/context.h"

namespace shoal::ops {

// The values in the device's memory, valid until the enclosing scope of ctx.workspace ends. GPU: copied in
// stream order; `values` may be dropped at once. CPU: a view of `values` themselves.   -> [n]
TensorView upload(Context& ctx, std::span<const int32_t> values);
TensorView upload(Context& ctx, std::span<const int64_t> values);
TensorView upload(Context& ctx, std::span<const float> values);
TensorView upload(Context& ctx, std::span<const std::byte> values);  // u8 [n]

// Copies a dense tensor of the device to host memory of its size, and waits for it.
void download(Context& ctx, TensorView from, void* to);
// A point in the work of a context: behind all that it was given so far.  On a CPU and in a plan: null.
using Mark = std::shared_ptr<void>;
Mark mark(Context& ctx);
// download(), which waits for the work before the mark alone: what came later goes on meanwhile.
void download(Context& ctx, const Mark& mark, TensorView from, void* to);
// A dense copy in host memory: for tests and taps, not for the steady state.
Tensor to_host(Context& ctx, TensorView from);
// Moves a host tensor to ctx.device, waiting for it; on the CPU it is the same tensor. For loading.
Tensor resident(Context& ctx, Tensor host);
// In the device's memory, not initialised; of a plan without memory. Throws Error(resource_exhausted).
Tensor new_tensor(const Context& ctx, DType dtype, const Shape& shape);

// y = 0.  Any dtype, dense.
void fill_zero(Context& ctx, TensorView y);
// Waits for all work of the context. Throws the error of a failed kernel.
void synchronize(Context& ctx);

// The plan with its tables uploaded (one copy).
BatchPlan on_device(Context& ctx, const BatchPlan& plan);

}  // namespace shoal::ops
