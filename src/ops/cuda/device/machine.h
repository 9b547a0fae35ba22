// What the choice of a kernel depends on.
#pragma once

#include <cstdint>

#include "ops/context.h"

namespace shoal::ops::cuda {

struct Machine {
  int multiprocessors = 132;
  int64_t shared_bytes = 227 << 10;  // that one block may have, and about what a multiprocessor has
  bool wgmma = false;                // has_wgmma
  int architecture = 90;             // compute capability times ten
};

Machine machine_of(const Context& ctx);

// Whether the program has kernels for the tensor cores of the context's GPU that ptx/wgmma.cuh describes:
// compute capability 9.0.
bool has_wgmma(const Context& ctx);

}  // namespace shoal::ops::cuda
