// An end for tests that hang.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "runtime/families/allocation/failing_memory_testing.h"

namespace shoal::testing {

// Fails the test program when a round hangs: threads that wait for each other cannot be stopped.
class Watchdog {
 public:
  explicit Watchdog(const char* what)
      : thread_([this, what] {
          const Spared spared;
          std::unique_lock lock(mutex_);
          if (changed_.wait_for(lock, std::chrono::minutes(5), [this] { return over_; })) return;
          std::fprintf(stderr, "[  FAILED  ] %s: hangs\n", what);
          std::_Exit(1);
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace shoal::testing
