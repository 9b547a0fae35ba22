// Shared by the engine's tests: a tiny model in the official format, and random requests for it.
#pragma once

#include <chrono>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "audio/encoder.h"
#include "ops/device_testing.h"
#include "shoal/engine.h"

namespace shoal::runtime::testing {

// Random weights (tests/data/fish/set_a): it hardly ever ends by itself, so max_new_tokens says how long it
// speaks.
inline EngineConfig tiny_config() {
  EngineConfig config;
  config.model = std::string(SHOAL_SOURCE_DIR) + "/tests/data/fish/set_a";
  config.device = ops::test_device_name();
  config.precision = Precision::float32;
  config.threads = 2;
  config.cache_dir = "none";
  config.references_dir = "/nonexistent";
  config.warm_up = false;
  config.request_timeout_s = 0;  // a sanitizer on a busy machine takes its time
  config.max_queue = 20'000;
  return config;
}

inline int between(std::mt19937_64& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

// A voice of `frames` frames in the tiny model's codes.
inline ReferenceCodes random_voice(std::mt19937_64& random, int frames) {
  ReferenceCodes voice{.codes = {}, .text = "the words of voice " + std::to_string(between(random, 0, 999))};
  for (int i = 0; i < frames * 10; ++i) voice.codes.push_back(between(random, 0, 31));
  return voice;
}

inline std::string random_text(std::mt19937_64& random) {
  static constexpr const char* kWords[] = {"one", "small", "fish", "swims", "under", "a", "cold", "moon"};
  std::string text = "Now";
  for (int words = between(random, 1, 12); words > 0; --words)
    text += std::string(" ") + kWords[between(random, 0, 7)];
  return text + ".";
}

// A wav file of noise that swells and fades.
inline std::string noise_wav(double seconds, uint32_t seed) {
  constexpr int kRateHz = 8000;
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> noise(-0.3f, 0.3f);
  std::vector<float> samples(static_cast<size_t>(seconds * kRateHz));
  for (size_t i = 0; i < samples.size(); ++i)
    samples[i] = noise(random) * (1.2f + std::sin(static_cast<float>(i) * 0.003f));
  const std::vector<std::byte> bytes =
      audio::encode(audio::Format::wav, {.sample_rate_hz = kRateHz, .rewritable_header = true}, samples);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Text, voice (one of `voices`, or none), sampling, seed, length, speed and volume at random.
inline SpeechRequest random_request(std::mt19937_64& random, const std::vector<ReferenceCodes>& voices,
                                    int most_frames) {
  SpeechRequest request;
  request.text = random_text(random);
  if (between(random, 0, 4) == 0) {  // several utterances
    request.text += " " + random_text(random) + " " + random_text(random);
    request.chunk_length = 50;
  }
  if (!voices.empty() && between(random, 0, 3) > 0)
    request.encoded_references.push_back(
        voices[static_cast<size_t>(between(random, 0, static_cast<int>(voices.size()) - 1))]);
  request.temperature = 0.5f + 0.1f * static_cast<float>(between(random, 0, 9));
  request.top_p = between(random, 0, 3) == 0 ? 0.0f : 0.9f;
  request.repetition_penalty = between(random, 0, 1) ? 1.5f : 1.0f;
  request.top_k = between(random, 0, 3) == 0 ? 20 : 0;
  request.seed = random();
  request.max_new_tokens = between(random, 2, most_frames);
  request.delivery = between(random, 0, 1) ? Delivery::whole : Delivery::streaming;
  request.quirks.keep_last_frame_without_end = between(random, 0, 1) == 1;
  request.client = std::string(1, static_cast<char>('a' + between(random, 0, 3)));
  if (*request.seed % 3 == 0) request.speed = 0.25 * static_cast<double>(1 + *request.seed / 3 % 16);
  if (*request.seed % 4 == 0) request.volume = 0.5f * static_cast<float>(1 + *request.seed / 4 % 6);
  return request;
}

// Has an end, soon.
inline SpeechRequest short_request(const std::string& text = "A fish.", int64_t frames = 12) {
  SpeechRequest request;
  request.text = text;
  request.seed = 3;
  request.max_new_tokens = frames;
  return request;
}

// Speaks for minutes, even if the test is not given a processor for seconds.
inline SpeechRequest endless_request() {
  SpeechRequest request = short_request("A fish.", 0);
  for (int i = 0; i < 200; ++i) request.text += " And another fish.";
  return request;
}

// The code of the Error that a call throws; the test fails if it throws none.
template <typename Call>
ErrorCode code_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::internal;
}

struct Answer {
  std::vector<int32_t> codes;
  std::vector<float> sound;
  friend bool operator==(const Answer&, const Answer&) = default;
};

inline Answer answer_of(Speech& speech) {
  Answer answer;
  answer.sound = speech.read_all();
  answer.codes = speech.codes();
  return answer;
}

}  // namespace shoal::runtime::testing
