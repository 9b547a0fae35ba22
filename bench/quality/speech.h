// What a model says of some texts, and how its speech compares with that of a reference.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "bench/quality/mel_cepstrum.h"
#include "shoal/engine_config.h"
#include "shoal/speech_request.h"

namespace shoal::quality {

struct SpokenText {
  std::vector<int32_t> codes;  // [frames, codebooks]
  int64_t frames = 0;
  bool ended = false;             // by itself, not at the limit of frames
  std::vector<Cepstrum> cepstra;  // if asked for
};

// Ways of speaking: as the requests say, and always what is likeliest.
enum Mode : size_t { kSampled, kGreedy, kModes };
inline constexpr const char* kModeNames[kModes] = {"sampled", "greedy"};

struct Speaker {
  double real_time_factor = 0;  // of sampled texts, one after another
  std::vector<SpokenText> texts[kModes];
};

struct SpeakPlan {
  std::vector<SpeechRequest> requests;       // each one piece of speech, with a seed
  bool greedy = true, cepstra = true;        // besides what is sampled
  std::function<void(size_t text)> on_text;  // before each; throws to stop
  // Each sound, mono; none: nobody asks.
  std::function<void(Mode mode, size_t text, std::span<const float> samples, int sample_rate_hz)> on_sound;
};

// Loads the model in an engine of its own, speaks, and unloads it. Throws Error as Engine does.
Speaker speak(const EngineConfig& config, const SpeakPlan& plan);

// Of the same texts: mean, longest, shortest length and its 1st, 50th and 99th percentile (nearest rank), as
// shares of the reference's frames (a speech without frames counts as one of one), shares that ended, MCD in
// dB of texts in which both made sound (or null).
nlohmann::ordered_json compare_speech(const std::vector<SpokenText>& reference,
                                      const std::vector<SpokenText>& other);

}  // namespace shoal::quality
