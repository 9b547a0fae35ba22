// The layout of a step's arrays in its block (step_graph.h).
#pragma once

#include <cstdint>
#include <new>
#include <span>

#include "ops/step_graph.h"

namespace shoal::ops {

// Lays arrays into a block one after the other, each at a multiple of 16 bytes; without a block it only
// counts their bytes.
class BlockLayout {
 public:
  explicit BlockLayout(const StepBlock* block) : block_(block) {}

  // The host's side of an array of this many T's, and the device's, as a tensor of these bytes. Without a
  // block it is empty, and *device does not change.
  template <typename T>
  std::span<T> next(int64_t count, DType dtype, const Shape& shape, TensorView* device) {
    const int64_t offset = bytes_;
    bytes_ = (bytes_ + count * static_cast<int64_t>(sizeof(T)) + 15) / 16 * 16;
    if (!block_) return {};
    *device = block_->device(offset, dtype, shape);
    return {std::launder(reinterpret_cast<T*>(block_->host() + offset)), static_cast<size_t>(count)};
  }

  int64_t bytes() const { return bytes_; }

 private:
  const StepBlock* block_;
  int64_t bytes_ = 0;
};

}  // namespace shoal::ops
