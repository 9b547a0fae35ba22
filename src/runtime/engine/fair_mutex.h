// A mutex that is given in the order of asking.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace shoal::runtime {

// For two loops that take turns on one team of threads: a std::mutex would let the one that just unlocked it
// lock it again before the other has woken up.
class FairMutex {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    const uint64_t ticket = next_++;
    turn_changed_.wait(lock, [&] { return serving_ == ticket; });
  }
  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      ++serving_;
    }
    turn_changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable turn_changed_;
  uint64_t next_ = 0, serving_ = 0;
};

}  // namespace shoal::runtime
