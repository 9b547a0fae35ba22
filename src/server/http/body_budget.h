// Memory for the bodies of all requests together.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

namespace shoal::server {

// Counts; from any thread.
class BodyBudget {
 public:
  explicit BodyBudget(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // False: it would exceed the budget, and nothing was taken.
  bool take(int64_t bytes) {
    if (held_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= max_bytes_) return true;
    give_back(bytes);
    return false;
  }
  void give_back(int64_t bytes) { held_.fetch_sub(bytes, std::memory_order_relaxed); }
  int64_t held() const { return held_.load(std::memory_order_relaxed); }

 private:
  const int64_t max_bytes_;
  std::atomic<int64_t> held_{0};
};

// The memory that one body or message has taken from it; the destructor gives it back.
class BodyShare {
 public:
  explicit BodyShare(BodyBudget& budget) : budget_(budget) {}
  ~BodyShare() { release(); }
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;

  // Holds at least `bytes`, growing by a factor of two where that is at most `most` and fits: memory that
  // grows so is copied seldom. False: it does not fit, and nothing was taken.
  bool hold(int64_t bytes, int64_t most) {
    if (bytes <= held_) return true;
    const int64_t generous = std::max(bytes, std::min(2 * held_, most));
    return take_to(generous) || take_to(bytes);
  }
  void release() { budget_.give_back(std::exchange(held_, 0)); }
  int64_t held() const { return held_; }

 private:
  bool take_to(int64_t bytes) {
    if (!budget_.take(bytes - held_)) return false;
    held_ = bytes;
    return true;
  }

  BodyBudget& budget_;
  int64_t held_ = 0;
};

}  // namespace shoal::server
