// Every tensor that DualAR::load asks a checkpoint for.
#pragma once

#include <vector>

#include "models/dual_ar/config.h"
#include "weights/inventory.h"

namespace shoal::dual_ar {

using weights::RequiredTensor;

// In the order they are bound. Parts: "embeddings", "slow layers", "head", "fast layers", "fast embedding and
// head". A tied head is counted once, with the embeddings. Reads and allocates nothing of the model's size.
std::vector<RequiredTensor> required_tensors(const Config& config);

// Those of them that weights of 8 or 4 bits replace: the matrices of the slow and the fast layers.
std::vector<RequiredTensor> layer_matrices(const Config& config);

}  // namespace shoal::dual_ar
