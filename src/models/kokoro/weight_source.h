// Where a model's weights come from.
#pragma once

#include <memory>
#include <string>

#include "base/thread_team.h"
#include "tensor/tensor.h"
#include "weights/checkpoint.h"

namespace shoal::kokoro {

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual bool contains(const std::string& name) const = 0;
  // f32, in host memory, the caller's own.
  virtual Tensor tensor(const std::string& name, const Shape& shape) = 0;
  // The kernel of a convolution: `prefix`.weight, or either form of weight norm folded
  // (weights/weight_norm.h).
  virtual Tensor convolution(const std::string& prefix, const Shape& shape) = 0;
};

// Throws Error: not_found, corrupt_file (a shape differs).
std::unique_ptr<WeightSource> read_weights(const weights::Checkpoint& checkpoint, ThreadTeam& team);

// Values of the size that training leaves: products keep the scale of their inputs, norms and alphas are near
// 1. Tokens last about three frames and the pitch is about 150 Hz, so that benchmarks speak as people do. A
// pure function of (seed, name, shape).
std::unique_ptr<WeightSource> random_weights(uint64_t seed, ThreadTeam& team);

// The team must outlive what the two return, and so must the checkpoint.
}  // namespace shoal::kokoro
