// An arena for the intermediate tensors of one step.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "tensor/tensor.h"

namespace shoal {

// Bump allocation from one block. Without a reservation the first passes find the size: the arena adds blocks
// and merges them into one at the next outermost Scope. After that the steady state allocates nothing, which
// tests prove with growths(). Not thread-safe: owned by the thread that runs the step.
class Workspace {
 public:
  // limit_bytes: growing beyond it throws Error(resource_exhausted); 0 means no limit.
  explicit Workspace(Device device = {}, int64_t limit_bytes = 0) : device_(device), limit_(limit_bytes) {}
  // Of host memory that `gpu` copies without the host's help (Buffer::page_locked).
  static Workspace page_locked(Device gpu, int64_t limit_bytes = 0);

  // For plans: what is allocated is counted, and has no memory (TensorView::is_sized_only), but arrays.
  static Workspace counting(Device device);
  bool counts_only() const { return counts_only_; }

  // Uninitialised, 64-byte aligned (256 on a GPU), valid until the enclosing Scope ends.
  TensorView alloc(DType dtype, Shape shape);
  // The same of values that the host writes at once. On a CPU.
  template <typename T>
  std::span<T> array(int64_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 64);
    void* const first = array_bytes(count * static_cast<int64_t>(sizeof(T)));
    return {static_cast<T*>(first), static_cast<size_t>(count)};
  }
  // Merges all blocks into one of at least `bytes`: passes that need no more never make it grow. Call outside
  // every scope. Throws Error(resource_exhausted); the previous memory may be lost then.
  void reserve(int64_t bytes);
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
    int64_t used_, counted_;
  };

  int64_t capacity_bytes() const;
  int64_t peak_bytes() const { return peak_; }
  // How often memory was taken from the system. Constant in the steady state.
  int64_t growths() const { return growths_; }
  // Whether no Scope is open and nothing is in use.
  bool empty() const { return depth_ == 0 && below_ + used_ == 0; }

 private:
  friend class Scope;
  int64_t aligned(int64_t bytes) const;
  void* array_bytes(int64_t bytes);
  void* count(int64_t bytes);
  void* take(int64_t bytes);
  void grow(int64_t bytes);
  Buffer block(int64_t bytes) const;

  Device device_;                     // of the views
  std::optional<Device> locked_for_;  // page-locked host memory for this device
  int64_t limit_;
  bool counts_only_ = false;
  std::vector<Buffer> blocks_;
  size_t block_ = 0;     // the block being filled
  int64_t used_ = 0;     // bytes used of it
  int64_t below_ = 0;    // bytes used of the blocks before it
  int64_t counted_ = 0;  // bytes used, where they are only counted
  int64_t peak_ = 0;
  int64_t growths_ = 0;
  int depth_ = 0;
};

}  // namespace shoal
