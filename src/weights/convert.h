// Stored weights (F32, BF16, F16) as float.
#pragma once

#include <span>

#include "base/thread_team.h"
#include "tensor/tensor.h"

namespace shoal::weights {

// Exact: every bf16 and f16 value is a float, NaN payloads and denormals included. `stored` is contiguous;
// `out` has its number of elements. Large tensors are split over `team` (nullptr: the caller alone).
void to_f32(TensorView stored, std::span<float> out, ThreadTeam* team = nullptr);

// The same into memory of its own. Throws Error(resource_exhausted).
Tensor to_f32(TensorView stored, ThreadTeam* team = nullptr);

}  // namespace shoal::weights
