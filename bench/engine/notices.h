// News of streams, on their way from the engine's threads to the one that reads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace shoal::bench {

// Something arrived for a stream, or it ended.
struct Notice {
  uint64_t stream = 0;
  int64_t at_us = 0;
};

// Thread-safe. Holds notices until they are taken: at most one for each piece in flight.
class Notices {
 public:
  void post(uint64_t stream) {
    {
      const std::lock_guard lock(mutex_);
      posted_.push_back({stream, now_us()});
    }
    changed_.notify_one();
  }

  // Takes all there are, in order; waits for the first, but not beyond until_us of now_us().
  std::vector<Notice> take(int64_t until_us) {
    std::unique_lock lock(mutex_);
    const std::chrono::steady_clock::time_point until{std::chrono::microseconds(until_us)};
    changed_.wait_until(lock, until, [this] { return !posted_.empty(); });
    return std::exchange(posted_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Notice> posted_;
};

}  // namespace shoal::bench
