// Until when a request may take.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shoal/engine_config.h"
#include "shoal/speech_request.h"

namespace shoal::runtime {

// In the clock of `now`; 0: for ever.
inline int64_t deadline_of(const EngineConfig& config, const SpeechRequest& request, int64_t now) {
  constexpr int64_t kLongest = int64_t{1}
                               << 50;  // microseconds; sums with the clock's stay far from overflow
  if (request.timeout.count() > 0)
    return now + std::min<int64_t>(request.timeout.count(), kLongest / 1000) * 1000;
  return config.request_timeout_s > 0 ? now + int64_t{config.request_timeout_s} * 1'000'000 : 0;
}

}  // namespace shoal::runtime
