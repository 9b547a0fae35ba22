// Waiting in tests for what another thread brings about.
#pragma once

#include <chrono>
#include <thread>

namespace shoal {

// Whether the condition became true. It gets a minute, which is never needed, even under a sanitizer.
template <typename Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 30000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

}  // namespace shoal
