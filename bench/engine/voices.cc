#include "bench/engine/voices.h"

#include <cmath>
#include <string>

#include "base/error.h"
#include "bench/measure/draws.h"
#include "bench/measure/sentences.h"

namespace shoal::bench {
namespace {

constexpr int kMostVoices = 10'000;
constexpr double kMostClipSeconds = 120;
constexpr int64_t kEnoughFrames = 64;
constexpr uint64_t kMostTries = 16;

// The codes that the model generated.
struct Spoken {
  std::vector<int32_t> codes;  // [frames, codebooks]
  int64_t frames = 0;
  double audio_s = 0;

  int64_t codebooks() const { return static_cast<int64_t>(codes.size()) / frames; }
  double frames_per_s() const { return static_cast<double>(frames) / audio_s; }
};

// Until there is enough to draw from; models that end early are asked again.
Spoken speak_a_little(Engine& engine, uint64_t seed, const std::function<bool()>& stop) {
  Spoken spoken;
  for (uint64_t attempt = 0; attempt < kMostTries && spoken.frames < kEnoughFrames; ++attempt) {
    if (stop && stop()) fail(ErrorCode::cancelled, "interrupted");
    SpeechRequest request;
    request.text = sentences()[attempt % sentences().size()];
    request.seed = seed + attempt;
    request.max_new_tokens = kEnoughFrames;
    request.quirks.keep_last_frame_without_end = true;
    Speech speech = engine.submit(std::move(request));
    speech.read_all();
    const SpeechSummary summary = speech.summary();
    const std::vector<int32_t> codes = speech.codes();
    spoken.codes.insert(spoken.codes.end(), codes.begin(), codes.end());
    spoken.frames += summary.frames;
    spoken.audio_s += summary.audio_s();
  }
  if (spoken.frames == 0) fail(ErrorCode::unavailable, "voices: the model said nothing to make voices of");
  return spoken;
}

}  // namespace

void check(const VoiceOptions& options) {
  if (options.count < 0 || options.count > kMostVoices)
    fail(ErrorCode::invalid_argument, "voices: expected 0 to ", kMostVoices, ", got ", options.count);
  if (!(options.seconds > 0 && options.seconds <= kMostClipSeconds))
    fail(ErrorCode::invalid_argument, "voice-seconds: expected more than 0, at most ", kMostClipSeconds,
         ", got ", options.seconds);
}

std::vector<int32_t> draw_frames(std::span<const int32_t> frames, int64_t codebooks, int64_t count,
                                 uint64_t seed, uint64_t index) {
  const auto width = static_cast<size_t>(codebooks);
  std::vector<int32_t> codes;
  codes.reserve(static_cast<size_t>(count) * width);
  for (int64_t i = 0; i < count; ++i) {
    // Voices have fewer than 2^32 frames each.
    const uint64_t place = index << 32 | static_cast<uint64_t>(i);
    const size_t frame = draw_below(frames.size() / width, seed, place, Draw::voice_frame);
    const auto drawn = frames.subspan(frame * width, width);
    codes.insert(codes.end(), drawn.begin(), drawn.end());
  }
  return codes;
}

std::vector<ReferenceCodes> make_voices(Engine& engine, const VoiceOptions& options,
                                        const std::function<bool()>& stop) {
  check(options);
  std::vector<ReferenceCodes> voices;
  if (options.count == 0) return voices;
  const Spoken spoken = speak_a_little(engine, options.seed, stop);
  const auto frames = static_cast<int64_t>(std::ceil(options.seconds * spoken.frames_per_s()));
  for (uint64_t i = 0; i < static_cast<uint64_t>(options.count); ++i) {
    voices.push_back({.codes = draw_frames(spoken.codes, spoken.codebooks(), frames, options.seed, i),
                      .text = concat("Speaker number ", i + 1, ". ", sentences()[i % sentences().size()])});
  }
  return voices;
}

}  // namespace shoal::bench
