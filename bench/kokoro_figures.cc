#include "bench/kokoro_figures.h"

#include "bench/model_figures.h"
#include "bench/timing.h"
#include "models/kokoro/step_memory.h"
#include "models/kokoro/voice_pack.h"
#include "ops/device_state.h"

namespace shoal::bench {
namespace {

// Utterances of one length and different phonemes.
std::vector<std::vector<int32_t>> phoneme_ids(const KokoroBenchOptions& options, const kokoro::Config& config,
                                              int count) {
  std::vector<std::vector<int32_t>> utterances;
  for (int u = 0; u < count; ++u) {
    std::vector<int32_t> ids = {0};
    for (int i = 0; i < options.phonemes; ++i)
      ids.push_back(config.vocab[static_cast<size_t>(i * 7 + u * 13) % config.vocab.size()].id);
    ids.push_back(0);
    utterances.push_back(std::move(ids));
  }
  return utterances;
}

int64_t frames_of(const std::vector<kokoro::Spoken>& spoken) {
  int64_t frames = 0;
  for (const kokoro::Spoken& one : spoken) frames += one.frames();
  return frames;
}

class Speaker {
 public:
  Speaker(const kokoro::Kokoro& model, const KokoroBenchOptions& options, ops::Context& ctx)
      : model_(model),
        options_(options),
        ctx_(ctx),
        memory_(ctx.graphs ? model.step_memory(ctx) : nullptr),
        pack_(kokoro::VoicePack::random(options.seed)) {
    const double usual = static_cast<double>(speak(1)) / static_cast<double>(options.phonemes + 2);
    speed_ = static_cast<float>(usual / options.frames_per_token);
  }
  // -> frames
  int64_t speak(int batch) const {
    const auto ids = phoneme_ids(options_, model_.config(), batch);
    std::vector<kokoro::Utterance> utterances;
    for (size_t u = 0; u < ids.size(); ++u)
      utterances.push_back(
          {.ids = ids[u], .style = pack_.row(options_.phonemes), .speed = speed_, .seed = u});
    return frames_of(memory_ ? model_.speak(ctx_, *memory_, utterances) : model_.speak(ctx_, utterances));
  }

 private:
  const kokoro::Kokoro& model_;
  const KokoroBenchOptions& options_;
  ops::Context& ctx_;
  const std::unique_ptr<const kokoro::StepMemory> memory_;
  const kokoro::VoicePack pack_;
  float speed_ = 1;
};

}  // namespace

KokoroBenchOptions KokoroBenchOptions::for_device(Device device) {
  KokoroBenchOptions options;
  if (!ops::computes_by_itself(device)) return options;
  options.batches = {1, 2, 4, 8, 16, 32};
  options.repeats = 20;
  return options;
}

KokoroFigures bench_kokoro(const MachineLimits& limits, const KokoroBenchOptions& options,
                           ops::Context& ctx) {
  KokoroFigures figures{.name = "kokoro, random weights", .dtype = std::string(name_of(options.dtype))};
  reset_peak_resident();
  options.on_part("making random weights");
  const kokoro::Kokoro model =
      kokoro::Kokoro::random(kokoro::Config::published(), ctx, options.dtype, options.seed);
  figures.weight_bytes = model.weight_bytes();
  const std::optional<int64_t> free = ops::free_device_memory(ctx.device);
  const RecordingsOfPart recordings(ctx);
  const Speaker speaker(model, options, ctx);
  for (const int batch : options.batches) {
    options.on_part("speaking " + std::to_string(batch) + " at a time");
    int64_t frames = 0;
    const double seconds = median_seconds(1, options.repeats, [&] { frames = speaker.speak(batch); });
    const double audio_s =
        static_cast<double>(frames * model.samples_per_frame()) / static_cast<double>(model.sample_rate_hz());
    const double rate = kKokoroGflopPerSecond * audio_s / seconds;
    figures.batches.push_back({.batch = batch,
                               .ms = seconds * 1e3,
                               .audio_s = audio_s,
                               .times_real_time = audio_s / seconds,
                               .gflop_per_s = rate,
                               .share_of_compute_limit = share_of(rate, compute_limit(limits, options.dtype)),
                               .device_bytes = free ? *free - *ops::free_device_memory(ctx.device) : 0});
  }
  figures.peak_resident_bytes = peak_resident_bytes();
  return figures;
}

}  // namespace shoal::bench
