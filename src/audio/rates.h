// Sample rates that answers may have.
#pragma once

#include "base/error.h"

namespace shoal::audio {

inline constexpr int kMinRateHz = 4000, kMaxRateHz = 192000;

// Throws Error(invalid_argument) for a rate outside kMinRateHz .. kMaxRateHz.
inline void check_rate(int sample_rate_hz) {
  if (sample_rate_hz < kMinRateHz || sample_rate_hz > kMaxRateHz)
    fail(ErrorCode::invalid_argument, "sample rate: expected ", kMinRateHz, " to ", kMaxRateHz, " Hz, got ",
         sample_rate_hz);
}

}  // namespace shoal::audio
