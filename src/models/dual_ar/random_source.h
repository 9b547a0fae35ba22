// Tensors of any name and shape, filled from a hash: benchmarks need sizes, not meaning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "models/dual_ar/bind.h"

namespace shoal::dual_ar {

// bf16. Matrices: zero mean, magnitudes about 1 / sqrt(inputs), so that activations keep their size through
// the layers; vectors (norms, biases) lie in [1/2, 1). A pure function of (seed, name, index).
class RandomSource : public TensorSource {
 public:
  RandomSource(uint64_t seed, ThreadTeam& team) : seed_(seed), team_(team) {}

  bool contains(std::string_view) override { return true; }
  TensorView get(const std::string& name, const Shape& shape) override;
  void release() override { alive_.clear(); }

 private:
  uint64_t seed_;
  ThreadTeam& team_;
  std::vector<Tensor> alive_;
};

}  // namespace shoal::dual_ar
