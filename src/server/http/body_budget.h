// Memory for the bodies of all requests together.
#pragma once

#include <atomic>
#include <cstdint>

namespace shoal::server {

// Counts; from any thread.
class BodyBudget {
 public:
  explicit BodyBudget(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // False: that would be too much, and nothing was taken.
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

}  // namespace shoal::server
