// What devices differ in, for those who may not name them (models, runtime).
#pragma once

#include "ops/context.h"

namespace shoal::ops {

// Whether the device has products with matrices of that dtype.
inline bool multiplies(Device device, DType dtype) {
  if (dtype == DType::f16) return device.kind == DeviceKind::cuda;
  return dtype == DType::f32 || dtype == DType::bf16;
}

// Whether work is best cut into pieces whose activations stay in the caches of the context's workers; a GPU
// wants as many rows as there are.
inline bool works_in_caches(const Context& ctx) { return ctx.device.kind == DeviceKind::cpu; }

}  // namespace shoal::ops
