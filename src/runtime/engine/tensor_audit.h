// A checkpoint's tensors beside those that its model asks for.
#pragma once

#include <span>
#include <string>

#include "shoal/model.h"
#include "tensor/tensor.h"
#include "weights/inventory.h"

namespace shoal::runtime {

// path: of the file. dtype: of the weights in memory.
CheckpointReport audit(std::string name, const weights::Checkpoint& checkpoint, const std::string& path,
                       std::span<const weights::RequiredTensor> required, DType dtype);

// Of all parts, in memory.
int64_t part_bytes(const CheckpointReport& report);

}  // namespace shoal::runtime
