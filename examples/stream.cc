// Speaks a sentence and writes the sound while it is being made, as raw 16-bit samples:
//
//   example_stream "Hello there." | aplay -f S16_LE -r 16000
#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "shoal/engine.h"

namespace {

// Samples are floats from -1 to 1.
int16_t to_16_bits(float sample) { return static_cast<int16_t>(std::clamp(sample, -1.0f, 1.0f) * 32767.0f); }

void stream(const char* text) {
  // An empty configuration is the built-in voice on every CPU; engine_config.h says what else can be set.
  shoal::Engine engine{shoal::EngineConfig{}};
  engine.start();

  shoal::SpeechRequest request;
  request.text = text;
  request.seed = 7;  // the same seed gives the same sound
  shoal::Speech speech = engine.submit(std::move(request));

  // next() waits for the next piece; an empty one is the end. The first comes after a few milliseconds.
  for (std::vector<float> piece = speech.next(); !piece.empty(); piece = speech.next()) {
    for (const float sample : piece) {
      const int16_t value = to_16_bits(sample);
      std::fwrite(&value, sizeof value, 1, stdout);
    }
    std::fflush(stdout);
  }

  const shoal::SpeechSummary summary = speech.summary();
  std::fprintf(stderr, "%.1f s of speech at %d Hz, the first after %.0f ms, all after %.2f s\n",
               summary.audio_s(), summary.sample_rate_hz, summary.first_audio_s * 1e3, summary.total_s);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    stream(argc > 1 ? argv[1] : "Hello there. This is a sentence to listen to.");
  } catch (const shoal::Error& error) {
    std::fprintf(stderr, "%s: %s\n", name_of(error.code()).data(), error.what());
    return 1;
  }
}
