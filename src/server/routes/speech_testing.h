// Shared by the tests of speaking routes: one engine, and the expected sound.
#pragma once

#include <string>
#include <vector>

#include "audio/clip.h"
#include "audio/encoder.h"
#include "audio/stream_resampler.h"
#include "base/temporary_folder_testing.h"
#include "server/body/members_testing.h"
#include "server/routes/routes_testing.h"

namespace shoal::server::testing {

inline std::string as_string(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A wav file of noise that swells and fades: something for a voice to be made of.
inline std::string noise_wav(double seconds, uint32_t seed) {
  std::vector<float> samples(static_cast<size_t>(seconds * 16000));
  for (size_t i = 0; i < samples.size(); ++i) {
    seed = seed * 1664525 + 1013904223;
    samples[i] = (static_cast<float>(seed >> 8) / 8388608.0f - 1) * 0.2f *
                 (1.2f + std::sin(static_cast<float>(i) * 0.003f));
  }
  return as_string(audio::encode(audio::Format::wav, {.sample_rate_hz = 16000}, samples));
}

// The built-in voice with two named voices, "anna" and "alloy", for all tests of a program.
inline Engine& shared_engine() {
  static const TemporaryFolder voices;
  static Engine engine([] {
    EngineConfig config = built_in_config();
    config.references_dir = voices.path();
    return config;
  }());
  static const bool started = [] {
    engine.start();
    engine.voices().add("anna", noise_wav(0.5, 1), "some words");
    engine.voices().add("alloy", noise_wav(0.5, 2), "other words");
    return true;
  }();
  EXPECT_TRUE(started);
  return engine;
}

// The limit of frames of an utterance in the tests, about a second of sound: other tests run at the same
// time.
constexpr int kFrames = 20;

// What HTTP clients get unless they say otherwise.
inline SpeechRequest spoken(const std::string& text, uint64_t seed = 7) {
  SpeechRequest request;
  request.max_new_tokens = kFrames;
  request.text = text;
  request.seed = seed;
  request.special_tokens = false;
  return request;
}

// What Fish Audio's clients, and batches, get unless they say otherwise.
inline SpeechRequest spoken_for_fish(const std::string& text, uint64_t seed = 7) {
  SpeechRequest request = spoken(text, seed);
  request.temperature = request.top_p = 0.8f;
  request.repetition_penalty = 1.1f;
  return request;
}

// Fields of a JSON body with kFrames and a test's own fields, before the closing brace.
inline std::string with_length(const std::string& fields) {
  std::string all;
  if (fields.find("\"max_new_tokens\"") == std::string::npos)
    all = R"(,"max_new_tokens":)" + std::to_string(kFrames);
  if (!fields.empty()) all += "," + fields;
  return all + "}";
}

inline std::vector<float> sound_of(Engine& engine, SpeechRequest request) {
  return engine.submit(std::move(request)).read_all();
}

inline std::string pcm_of(const std::vector<float>& samples) {
  return as_string(audio::encode(audio::Format::pcm_s16le, {}, samples));
}

inline std::string pcm_at(const std::vector<float>& samples, int from_hz, int to_hz) {
  audio::StreamResampler resampler(from_hz, to_hz);
  std::vector<float> out;
  resampler.push(samples, out);
  resampler.finish(out);
  return pcm_of(out);
}

// The samples of a file or stream, as 16-bit PCM.
inline std::string decoded(const std::string& file) {
  const audio::Clip clip = audio::decode_clip(std::as_bytes(std::span(file)), "answer");
  std::string pcm;
  for (const float sample : clip.samples) {
    const auto value = static_cast<int16_t>(std::lrint(sample * 32768.0f));
    pcm.push_back(static_cast<char>(value & 0xFF));
    pcm.push_back(static_cast<char>(value >> 8 & 0xFF));
  }
  return pcm;
}

inline Value body_value(const Answered& answered) { return read_json(answered.body()); }

}  // namespace shoal::server::testing
