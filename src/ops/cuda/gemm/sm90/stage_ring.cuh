// The stages of shared memory through which operands pass.
#pragma once

#include <cstdint>

namespace shoal::ops::cuda {

// Stages in turn, and which of their barriers' phases is next.
struct StageRing {
  int stage = 0;
  uint32_t parity = 0;

  __device__ void advance(int stages) {
    if (++stage < stages) return;
    stage = 0;
    parity ^= 1;
  }
};

}  // namespace shoal::ops::cuda
