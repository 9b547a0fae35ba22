// Steps that are the same launches every time, recorded once and replayed (CUDA graphs).
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>

#include "base/function_ref.h"
#include "ops/context.h"

namespace shoal::ops {

// What a recorded step is: whose, which, and its sizes; new_step_serial of its memory may stand for one that
// is always the same.
struct StepKey {
  const void* owner = nullptr;
  int64_t step = 0, rows = 0, sequences = 0;
  auto operator<=>(const StepKey&) const = default;
};

// A number that no other memory of steps has: it may lie where another lay, whose steps must not be replayed
// on it.
inline int64_t new_step_serial() {
  static std::atomic<int64_t> last{0};
  return ++last;
}

// The recordings of one Context. Not thread-safe. CPU: holds nothing.
class StepGraphs {
 public:
  StepGraphs();
  ~StepGraphs();
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  int64_t count() const;
  // Drops all recordings.
  void clear();

 private:
  friend void run_step(Context& ctx, const StepKey& key, FunctionRef<void()> body);
  struct Recording;
  std::map<StepKey, std::unique_ptr<Recording>> recordings_;
};

// Does what `body` does. Without ctx.graphs it calls it. With them: the first time of a key it calls it (so
// that the workspace grows), the second time it records it, from then on it replays the recording without
// calling body. So body must consist of ops alone; they must work on memory that stays where it is between
// calls with this key (owned tensors, and scratch taken from ctx.workspace inside body); what varies must
// stand in that memory. body must not upload, download or wait: copies of fixed host memory are ops too
// (copy_step below). Must be called outside of every scope of ctx.workspace. A recording whose scratch has
// moved is made anew.
void run_step(Context& ctx, const StepKey& key, FunctionRef<void()> body);

// Memory of a step that the host writes or reads, and its twin on the device. CPU: one and the same memory.
class StepBlock {
 public:
  StepBlock() = default;
  StepBlock(Context& ctx, int64_t bytes);  // zeros. Throws Error(resource_exhausted)
  int64_t bytes() const { return host_.bytes(); }
  std::byte* host() const { return static_cast<std::byte*>(host_.data()); }
  // Typed views of the device's side: `count` values at byte `offset` (a multiple of 16).
  TensorView device(int64_t offset, DType dtype, Shape shape) const;
  // Ops (allowed in run_step): the first `bytes` of one side over the other, in stream order.
  void copy_to_device(Context& ctx, int64_t bytes) const;
  void copy_to_host(Context& ctx, int64_t bytes) const;

 private:
  Buffer host_;    // page-locked
  Buffer device_;  // empty on the CPU
  Device where_;
};

}  // namespace shoal::ops
