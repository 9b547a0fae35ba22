#include "bench/quality/speech.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "shoal/engine.h"
#include "shoal/model.h"

namespace shoal::quality {

Speaker speak(const EngineConfig& config, const SpeakPlan& plan) {
  EngineConfig own = config_for_one(config, plan.requests.front());
  own.warm_up = true;  // speed is measured
  Engine engine(own);
  engine.start();
  Speaker speaker;
  double audio_s = 0, total_s = 0;
  for (const Mode mode : {kSampled, kGreedy}) {
    if (mode == kGreedy && !plan.greedy) continue;
    for (size_t i = 0; i < plan.requests.size(); ++i) {
      plan.on_text(i);
      SpeechRequest request = plan.requests[i];
      if (mode == kGreedy) request.top_p = 0.0f, request.top_k = 1;
      Speech speech = engine.submit(std::move(request));
      const std::vector<float> samples = speech.read_all();
      const SpeechSummary summary = speech.summary();
      SpokenText text{.codes = speech.codes(), .frames = summary.frames, .ended = summary.cut_at_frames == 0};
      if (plan.cepstra) text.cepstra = mel_cepstra(samples, summary.sample_rate_hz);
      if (plan.on_sound) plan.on_sound(mode, i, samples, summary.sample_rate_hz);
      if (mode == kSampled) audio_s += summary.audio_s(), total_s += summary.total_s;
      speaker.texts[mode].push_back(std::move(text));
    }
  }
  if (audio_s > 0) speaker.real_time_factor = total_s / audio_s;
  return speaker;
}

nlohmann::ordered_json compare_speech(const std::vector<SpokenText>& reference,
                                      const std::vector<SpokenText>& other) {
  CHECK(reference.size() == other.size() && !other.empty(), reference.size(), " and ", other.size(),
        " texts");
  const auto frames = [](const SpokenText& text) {
    return static_cast<double>(std::max<int64_t>(1, text.frames));
  };
  std::vector<double> ratios;
  double sum = 0, ended = 0, ended_reference = 0;
  double mcd_sum = 0, mcd_worst = 0, heard = 0;
  for (size_t i = 0; i < other.size(); ++i) {
    ratios.push_back(frames(other[i]) / frames(reference[i]));
    sum += ratios.back();
    ended += other[i].ended, ended_reference += reference[i].ended;
    if (const auto mcd = mel_cepstral_distortion(reference[i].cepstra, other[i].cepstra))
      mcd_sum += *mcd, mcd_worst = std::max(mcd_worst, *mcd), ++heard;
  }
  const auto count = static_cast<double>(other.size());
  std::ranges::sort(ratios);
  // The smallest that so large a share of the texts does not exceed.
  const auto quantile = [&](double share) {
    return ratios[static_cast<size_t>(std::max(1.0, std::ceil(share * count))) - 1];
  };
  nlohmann::ordered_json figures{{"mean_length", sum / count},  {"longest", ratios.back()},
                                 {"shortest", ratios.front()},  {"p01_length", quantile(0.01)},
                                 {"p50_length", quantile(0.5)}, {"p99_length", quantile(0.99)},
                                 {"ended", ended / count},      {"ended_reference", ended_reference / count},
                                 {"mean_mcd_db", nullptr},      {"worst_mcd_db", nullptr}};
  if (heard > 0) figures["mean_mcd_db"] = mcd_sum / heard, figures["worst_mcd_db"] = mcd_worst;
  return figures;
}

}  // namespace shoal::quality
