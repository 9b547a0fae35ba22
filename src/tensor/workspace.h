// An arena for the intermediate tensors of one step.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace shoal {

// Bump allocation from one block. The first passes find out how much is needed (the arena adds blocks, then
// merges them into one at the next outermost Scope); after that the steady state allocates nothing, which
// growths() lets tests prove. Not thread-safe: owned by the thread that runs the step.
class Workspace {
 public:
  // limit_bytes: growing beyond it throws Error(resource_exhausted); 0 means no limit.
  explicit Workspace(Device device = {}, int64_t limit_bytes = 0) : device_(device), limit_(limit_bytes) {}

  // Uninitialised, 64-byte aligned, valid until the enclosing Scope ends.
  TensorView alloc(DType dtype, Shape shape);
  // Same shape and dtype, contiguous.
  TensorView like(TensorView other) { return alloc(other.dtype(), other.shape()); }

  // Marks a point; everything allocated after it is released at the end of the scope.
  class Scope {
   public:
    explicit Scope(Workspace& workspace);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Workspace& workspace_;
    size_t block_;
    int64_t used_;
  };

  int64_t capacity_bytes() const;
  int64_t peak_bytes() const { return peak_; }
  // How often memory was taken from the system. Constant in the steady state.
  int64_t growths() const { return growths_; }

 private:
  friend class Scope;
  void grow(int64_t bytes);
  void merge_blocks();

  Device device_;
  int64_t limit_;
  std::vector<Buffer> blocks_;
  size_t block_ = 0;   // the block being filled
  int64_t used_ = 0;   // bytes used of it
  int64_t below_ = 0;  // bytes used of the blocks before it
  int64_t peak_ = 0;
  int64_t growths_ = 0;
  int depth_ = 0;
};

}  // namespace shoal
