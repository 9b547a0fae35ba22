// Where codes are made from clips, and sound from codes that belong to no stream.
#pragma once

#include <mutex>

#include "base/thread_team.h"
#include "ops/execution.h"

namespace shoal::runtime {

// Thread-safe. It must not starve the streams that speak meanwhile: it has its own threads, and few of them,
// on a GPU the lowest priority, and it keeps its memory: taking a GPU's memory stops everything on it.
class ClipWork {
 public:
  ClipWork(Device device, int threads)
      : team_(threads), execution_(device, team_, {.priority = ops::StreamPriority::low}) {}

  // Calls what(context), for one caller at a time.
  template <typename What>
  void run(const What& what) {
    const std::lock_guard lock(mutex_);
    what(execution_.context());
  }

 private:
  std::mutex mutex_;
  ThreadTeam team_;
  ops::Execution execution_;
};

}  // namespace shoal::runtime
