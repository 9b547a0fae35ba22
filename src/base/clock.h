// Time that only goes forward.
#pragma once

#include <chrono>
#include <cstdint>

namespace shoal {

// Microseconds of the monotonic clock.
inline int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace shoal
