#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace shoal {

// A mutex that is taken in the order in which threads ask for it: whoever unlocks and locks again at once
// waits behind all who wait already. For std::lock_guard.
class FairMutex {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    const uint64_t turn = asked_++;
    changed_.wait(lock, [&] { return turn == served_; });
  }
  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      ++served_;
    }
    changed_.notify_all();
  }
  // Threads that have it (one at most) or wait for it.
  uint64_t threads() const {
    const std::lock_guard lock(mutex_);
    return asked_ - served_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t asked_ = 0, served_ = 0;
};

}  // namespace shoal
