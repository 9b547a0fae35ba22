// Where codes are made from clips, and sound from codes that belong to no stream.
#pragma once

#include <atomic>
#include <mutex>

#include "base/fair_mutex.h"
#include "base/thread_team.h"
#include "ops/execution.h"

namespace shoal::runtime {

// Thread-safe. It must not starve the streams that speak meanwhile: it has its own threads, and few of them,
// on a GPU the lowest priority, and it keeps its memory: taking a GPU's memory stops everything on it.
class ClipWork {
 public:
  ClipWork(Device device, int threads)
      : team_(threads), execution_(device, team_, {.priority = ops::StreamPriority::low}) {}

  // Calls what(context), for one caller at a time, in the order of the calls.
  template <typename What>
  void run(const What& what) {
    const std::lock_guard lock(mutex_);
    what(execution_.context());
    workspace_bytes_.store(execution_.workspace_bytes(), std::memory_order_relaxed);
  }
  int64_t workspace_bytes() const { return workspace_bytes_.load(std::memory_order_relaxed); }

 private:
  FairMutex mutex_;
  ThreadTeam team_;
  ops::Execution execution_;
  std::atomic<int64_t> workspace_bytes_{0};
};

}  // namespace shoal::runtime
