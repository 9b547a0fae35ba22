#pragma once

#include <chrono>

#include "capi/handle.h"
#include "shoal/shoal.h"
#include "shoal/speech.h"

struct shoal_speech : shoal::capi::Handle {
  static constexpr auto kKind = shoal::capi::Kind::speech;
  shoal_speech(shoal::Speech started, bool with_callbacks)
      : Handle(kKind), speech(std::move(started)), pushed(with_callbacks) {}
  shoal::Speech speech;
  const bool pushed;  // its callbacks receive the sound
};

namespace shoal::capi {

shoal_summary summary_of(const SpeechSummary& summary);

// How long a timeout of the interface is; negative: so long that it is without limit.
std::chrono::milliseconds patience_of(int64_t timeout_ms);

}  // namespace shoal::capi
