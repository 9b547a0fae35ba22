#include "bench/speech/speech_figures.h"

#include <algorithm>
#include <vector>

#include "bench/machine.h"
#include "runtime/synthesizer.h"

namespace shoal::bench {

SpeechFigures bench_speech(const SpeechBenchOptions& options, ThreadTeam& team) {
  constexpr int kRuns = 5;
  Workspace workspace;
  ops::Context ctx{.device = {}, .team = &team, .workspace = &workspace, .stream = nullptr};
  const double load_start = now_s();
  const auto model =
      runtime::SpeechModel::load({.dir = options.model_dir, .precision = options.precision}, ctx);
  const double load_s = now_s() - load_start;

  runtime::Synthesizer synthesizer(*model, team);
  runtime::SpeechRequest request = runtime::default_request(*model);
  request.text = options.text;
  request.sampling.seed = 42;
  std::vector<runtime::SpeechStatistics> runs;
  for (int run = 0; run <= kRuns; ++run) {
    const runtime::SpeechStatistics s = synthesizer.speak(request, [](std::span<const float>) {});
    if (run > 0) runs.push_back(s);  // the first run sizes the workspace
  }
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.total_s < b.total_s; });
  const runtime::SpeechStatistics& middle = runs[runs.size() / 2];
  return {.model = model->name(),
          .precision = model->precision() == DType::f32 ? "float32" : "bfloat16",
          .load_s = load_s,
          .audio_s = middle.audio_s(),
          .times_real_time = 1 / middle.real_time_factor(),
          .first_audio_ms = middle.first_audio_s * 1e3,
          .frames_per_s = static_cast<double>(middle.frames) / middle.decode_s,
          .decode_share = middle.decode_s / middle.total_s,
          .codec_share = middle.codec_s / middle.total_s};
}

}  // namespace shoal::bench
