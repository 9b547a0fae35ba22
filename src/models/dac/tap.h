// A look inside, for tests.
#pragma once

#include <string_view>

#include "base/function_ref.h"
#include "tensor/tensor.h"

namespace shoal::dac {

// Sees the output of every stage by its name in the reference ("block1", "post_module", "model3",
// "q2.latent"): rows of channels, in order, as they are computed (pieces of a long clip come one after
// another).
using Tap = FunctionRef<void(std::string_view stage, TensorView rows)>;

}  // namespace shoal::dac
