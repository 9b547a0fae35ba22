// Every tensor that Codec::load asks a checkpoint for.
#pragma once

#include <vector>

#include "models/dac/codec.h"
#include "weights/inventory.h"

namespace shoal::dac {

using weights::RequiredTensor;

// In the order they are bound. Parts: "codec encoder", "codec quantiser", "codec decoder". Binds a codec of
// random weights to find out: half a second and 0.8 GB for the published sizes.
std::vector<RequiredTensor> required_tensors(const Config& config, Parts parts);

}  // namespace shoal::dac
