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
  // Of a pass of a decoder at most. A GPU's workspace grows with it: of S1-mini's sizes to 93 MB, as much as
  // clips take.
  static constexpr int64_t kDecodedFrames = 32;

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
