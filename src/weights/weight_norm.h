// Weight normalisation, undone at load time (dac/MODEL.md, Blocks).
#pragma once

#include <string_view>

#include "base/thread_team.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"
#include "weights/checkpoint.h"

namespace shoal::weights {

// w = g * v / ||v||, the norm taken over all dimensions but the first.
// g: [n, 1, ...], v: [n, ...] of equal rank, each F32, BF16 or F16 -> F32 of v's shape. Norm and quotient in
// double, rounded once. Throws Error(corrupt_file) when a row of v is zero or not finite: its direction is
// undefined.
Tensor fold_weight_norm(TensorView g, TensorView v, ThreadTeam* team);

// The weight of a convolution in whichever form it is stored, as F32 of the expected shape: <prefix>.weight,
// or to be folded: <prefix>.parametrizations.weight.original0 (g) and original1 (v), or <prefix>.weight_g and
// weight_v. Throws Error: not_found, corrupt_file.
Tensor conv_weight(const Checkpoint& checkpoint, std::string_view prefix, const Shape& expected,
                   ThreadTeam* team);

}  // namespace shoal::weights
