// End to end: text to samples with a real voice.
#pragma once

#include <string>

#include "base/thread_team.h"
#include "runtime/speech_model.h"

namespace shoal::bench {

struct SpeechBenchOptions {
  std::string model_dir;  // empty: the built-in voice
  Precision precision = Precision::automatic;
  std::string text;
};

// Median of several runs after a warm-up.
struct SpeechFigures {
  std::string model, precision;
  double load_s = 0;
  double audio_s = 0;
  double times_real_time = 0;
  double first_audio_ms = 0;
  double frames_per_s = 0;                   // of the language model alone
  double decode_share = 0, codec_share = 0;  // of the total time
};

SpeechFigures bench_speech(const SpeechBenchOptions& options, ThreadTeam& team);

}  // namespace shoal::bench
