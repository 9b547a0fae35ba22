// Does our sampler have the official probabilities, and sample the same tokens with the same noise? For any
// folder with lm_goldens.* or s2_goldens.*, the cases under "sampler". Missing goldens are counted as absent;
// failures are GoogleTest failures with the folder and the case.
#pragma once

#include <string>

namespace shoal::parity {

void check_samplers(const std::string& dir);

}  // namespace shoal::parity
