// A bell that one thread waits for and any thread may ring.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/clock.h"

namespace shoal::runtime {

// A ring is remembered until the next wait returns.
class WakeSignal {
 public:
  void ring() noexcept {
    {
      const std::lock_guard lock(mutex_);
      rung_ = true;
    }
    condition_.notify_one();
  }

  // Returns when the bell has rung, or at until_us of now_us(); 0: only when it has rung.
  void wait(int64_t until_us = 0) {
    std::unique_lock lock(mutex_);
    const auto rung = [this] { return rung_; };
    if (until_us == 0) {
      condition_.wait(lock, rung);
    } else {
      const std::chrono::steady_clock::time_point until{std::chrono::microseconds(until_us)};
      condition_.wait_until(lock, until, rung);
    }
    rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool rung_ = false;
};

}  // namespace shoal::runtime
