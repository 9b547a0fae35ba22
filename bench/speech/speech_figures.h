// End to end: text to samples with a real voice, one request at a time.
#pragma once

#include <string>

#include "shoal/engine_config.h"

namespace shoal::bench {

struct SpeechBenchOptions {
  EngineConfig config;
  std::string text;
};

// Median of several runs after a warm-up.
struct SpeechFigures {
  std::string model, precision, formats, device;  // formats: in_words() of them
  double load_s = 0;                              // to readiness, warm-up included
  double audio_s = 0;
  double times_real_time = 0;
  double first_audio_ms = 0;
  double frames_per_s = 0;  // spoken
};

SpeechFigures bench_speech(const SpeechBenchOptions& options);

}  // namespace shoal::bench
