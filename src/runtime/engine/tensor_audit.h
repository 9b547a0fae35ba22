// Compares a checkpoint's tensors with those that its model needs.
#pragma once

#include <span>
#include <string>

#include "shoal/model.h"
#include "tensor/tensor.h"
#include "weights/inventory.h"

namespace shoal::runtime {

// path: of the file. dtype: of the weights in memory, unless they are kept in 8 bits.
CheckpointReport audit(std::string name, const weights::Checkpoint& checkpoint, const std::string& path,
                       std::span<const weights::RequiredTensor> required, DType dtype);

// The same of random weights: the parts alone, no file.
CheckpointReport sizes_of_random(std::string name, std::span<const weights::RequiredTensor> required,
                                 DType dtype);

// Of all parts, in memory.
int64_t part_bytes(const CheckpointReport& report);

}  // namespace shoal::runtime
