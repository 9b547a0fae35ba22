// What torch.save writes of one tensor.
#pragma once

#include <span>
#include <string>

#include "tensor/shape.h"

namespace shoal::weights {

// The bytes of a file that torch.load reads as a contiguous float32 tensor on the CPU: a zip archive of
// stored entries with the pickle (protocol 2, _rebuild_tensor_v2), the values, the byte order and the
// version. Equal values give equal bytes. The shape's product is values.size(), at most 2^28.
std::string write_torch_tensor(std::span<const float> values, const Shape& shape);

}  // namespace shoal::weights
