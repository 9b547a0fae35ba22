// Steps that are the same launches every time, recorded once and replayed (CUDA graphs).
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "base/function_ref.h"
#include "ops/context.h"
#include "ops/stream.h"

namespace shoal::ops {

// Identifies a recorded step: its owner, which step of it, and its sizes. A step that always uses the same
// memory may be identified by that memory's new_step_serial.
struct StepKey {
  const void* owner = nullptr;
  int64_t step = 0, rows = 0, sequences = 0;
  auto operator<=>(const StepKey&) const = default;
};

// Memory that a driver keeps for one launch of a recording: an allowance, about twice what an H200 used.
inline constexpr int64_t kBytesOfLaunch = 2048;

// A number that no other step memory has. An address is not enough: new memory may lie where freed memory
// lay, and the old steps must not be replayed on it.
inline int64_t new_step_serial() {
  static std::atomic<int64_t> last{0};
  return ++last;
}

// The CUDA graphs of one Context. Not thread-safe. CPU: always empty.
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
  // A recording belongs to the multiprocessors that it was made for.
  std::map<std::pair<StepKey, Share>, std::unique_ptr<Recording>> recordings_;
};

// Executes `body`. Without ctx.graphs it calls body. With them, the first time of a key it calls body (so
// that the workspace grows), the second time it captures body's launches in a CUDA graph, and from then on it
// replays the graph without calling body. So body must consist only of ops; they must work on memory whose
// address is the same in all calls with this key (owned tensors, and scratch taken from ctx.workspace inside
// body); inputs that vary must be stored in that memory. body must not upload, download or wait: copies of
// fixed host memory are ops too (StepBlock below). Must be called outside every scope of ctx.workspace. A
// graph whose scratch has moved is captured again.
void run_step(Context& ctx, const StepKey& key, FunctionRef<void()> body);

// Memory of a step that the host writes or reads, and its twin on the device. CPU: one and the same memory. A
// plan's twin has none.
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
  void copy(Context& ctx, const Buffer& from, const Buffer& to, int64_t count) const;

  Buffer host_;    // page-locked
  Buffer device_;  // empty on the CPU
  Device where_;
};

}  // namespace shoal::ops
