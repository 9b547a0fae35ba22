// The triangular factor of a symmetric matrix, last row first. Compiled for the baseline: the same bits
// everywhere.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_team.h"
#include "tensor/tensor.h"

namespace shoal::ops::cpu {

// V with V V^T = matrix + damping I and zeros below the diagonal. matrix: f32 [n, n], dense, symmetric.
// Returns f64 [n, n], row by row; empty unless the sum is positive definite.
std::vector<double> upper_factor(ThreadTeam& team, TensorView matrix, double damping);

}  // namespace shoal::ops::cpu
