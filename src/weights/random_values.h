// Values for models without a checkpoint: benchmarks and tests.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/thread_team.h"
#include "tensor/tensor.h"

namespace shoal::weights {

// Uniform in centre +- spread.
struct Spread {
  float centre = 0, spread = 0;
};

// Tensors that are a pure function of (seed, name, shape, spread). One table is drawn and read at an offset
// that depends on the name: 400 million Philox words would take seconds.
class RandomValues {
 public:
  // The team must outlive it.
  RandomValues(uint64_t seed, ThreadTeam& team);
  // f32, in host memory. Throws Error(resource_exhausted).
  Tensor draw(std::string_view name, const Shape& shape, Spread spread) const;

 private:
  uint64_t seed_;
  ThreadTeam& team_;
  std::vector<float> table_;  // uniform in (-1, 1)
};

}  // namespace shoal::weights
