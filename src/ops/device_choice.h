// Which device a configuration means.
#pragma once

#include <string_view>

#include "tensor/tensor.h"

namespace shoal::ops {

// "auto", "cpu", "cuda", "cuda:N". Throws Error(unsupported) for what this build cannot compute on.
Device choose_device(std::string_view name);

}  // namespace shoal::ops
