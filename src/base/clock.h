// Time that only goes forward.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace shoal {

// Microseconds of the monotonic clock.
inline int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Of two moments, 0 standing for never.
inline int64_t earlier(int64_t a, int64_t b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); }

}  // namespace shoal
