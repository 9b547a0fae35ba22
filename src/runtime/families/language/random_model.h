// Models of random weights at published sizes, for benchmarks: "random:s1-mini", "random:s2-pro".
#pragma once

#include <optional>
#include <string_view>

#include "models/dual_ar/config.h"

namespace shoal::runtime {

// The sizes of the language model of that name; none for any other name. Its codec is
// dac::Config::published().
std::optional<dual_ar::Config> random_sizes(std::string_view model);

}  // namespace shoal::runtime
