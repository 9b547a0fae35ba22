#include "bench/speech/speech_figures.h"

#include <algorithm>
#include <vector>

#include "bench/timing.h"
#include "shoal/engine.h"

namespace shoal::bench {

SpeechFigures bench_speech(const SpeechBenchOptions& options) {
  constexpr int kRuns = 5;
  const double load_start = now_s();
  Engine engine(options.config);
  engine.start();
  const double load_s = now_s() - load_start;

  SpeechRequest request;
  request.text = options.text;
  request.seed = 42;
  std::vector<SpeechSummary> runs;
  for (int run = 0; run <= kRuns; ++run) {
    Speech speech = engine.submit(request);
    speech.read_all();
    if (run > 0) runs.push_back(speech.summary());  // the first run sizes the workspaces
  }
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.total_s < b.total_s; });
  const SpeechSummary& middle = runs[runs.size() / 2];
  const Health health = engine.health();
  return {.model = health.model,
          .precision = health.formats.precision,
          .formats = in_words(health.formats),
          .device = health.device,
          .load_s = load_s,
          .audio_s = middle.audio_s(),
          .times_real_time = 1 / middle.real_time_factor(),
          .first_audio_ms = middle.first_audio_s * 1e3,
          .frames_per_s = static_cast<double>(middle.frames) / middle.total_s};
}

}  // namespace shoal::bench
