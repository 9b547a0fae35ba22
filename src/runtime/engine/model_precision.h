// The formats that a precision means for a checkpoint.
#pragma once

#include "shoal/engine_config.h"
#include "tensor/formats.h"
#include "tensor/tensor.h"
#include "weights/checkpoint.h"

namespace shoal::runtime {

// Throws Error(unsupported) for a precision that the device does not compute in.
void check_precision(Precision precision, Device device);
// Throws Error(unsupported) for weights that the device does not multiply.
void check_weights(WeightFormat weights, Device device);
// These formats with the layers' weights as asked for.
Formats with_weights(Formats formats, WeightFormat weights);
// The name of the chosen precision.
Precision precision_of(const Formats& formats);
// automatic: 16 bits where the larger part of the checkpoint is stored so.
Formats choose_formats(Precision precision, const weights::Checkpoint& checkpoint);
// The same for random weights, which stand for a 16-bit checkpoint.
Formats formats_of_random_weights(Precision precision);

}  // namespace shoal::runtime
