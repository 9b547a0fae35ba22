// Every tensor that Codec::load asks a checkpoint for.
#pragma once

#include <vector>

#include "models/dac/codec.h"
#include "weights/inventory.h"

namespace shoal::dac {

using weights::RequiredTensor;

// In the order they are bound. Parts: "codec encoder", "codec quantiser", "codec decoder". Reads
// and allocates nothing of the codec's size. Those with outputs_axis may be kept in 8 bits.
std::vector<RequiredTensor> required_tensors(const Config& config, Parts parts);

}  // namespace shoal::dac
