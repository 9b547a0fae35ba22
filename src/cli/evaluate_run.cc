#include "cli/evaluate_run.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>

#include "base/error.h"
#include "base/printable.h"
#include "bench/measure/sentences.h"
#include "bench/measure/texts.h"
#include "bench/quality/logits.h"
#include "bench/quality/speech.h"
#include "cli/interrupt.h"
#include "cli/kept_sounds.h"
#include "cli/progress.h"
#include "shoal/model.h"

namespace shoal::cli {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostTextBytes = 1000, kMostSentenceBytes = 200;
constexpr int64_t kUsualFrames = 1024, kFramesOfNoise = 16;

bool speaks_noise(const EngineConfig& config) { return config.model.starts_with("random:"); }

EngineConfig side_config(const EvaluateOptions& o) {
  EngineConfig config = o.settings.resolve().config;
  if (!o.model.empty()) config.model = o.model;
  config.device = resolve_device(config.device);
  return config;
}

EngineConfig reference_config(const EvaluateOptions& o, EngineConfig config) {
  if (!o.against.empty()) config.model = o.against;
  config.precision = parse_precision(o.against_precision);
  config.weights = parse_weight_format(o.against_weights);
  config.kv_precision = parse_kv_precision(o.against_kv_precision);
  config.codec_weights = parse_codec_weights(o.against_codec_weights);
  return config;
}

void check_side(const EngineConfig& config) {
  if (traits_of(config.model).family == "kokoro")
    fail(ErrorCode::unsupported, "evaluate: ", printable(config.model),
         " is a Kokoro model, which writes no codes whose logits could be compared; expected a language "
         "model");
  config.validate();
}

std::vector<std::string> texts_of(const EvaluateOptions& o) {
  std::vector<std::string> texts;
  if (!o.texts.empty()) texts = bench::read_texts(o.texts);
  for (const std::string_view sentence : bench::sentences())
    if (o.texts.empty() && sentence.size() <= kMostSentenceBytes) texts.emplace_back(sentence);
  if (o.sentences) texts.resize(std::min(texts.size(), static_cast<size_t>(*o.sentences)));
  return texts;
}

std::vector<SpeechRequest> requests_of(const EvaluateOptions& o, const EngineConfig& config) {
  std::vector<SpeechRequest> requests;
  for (std::string& text : texts_of(o)) {
    const std::string place = concat("text ", requests.size() + 1);
    if (text.size() > kMostTextBytes)
      fail(ErrorCode::too_large, place, ": ", text.size(), " bytes, at most ", kMostTextBytes,
           " are spoken in one piece");
    SpeechRequest request{.text = std::move(text)};
    request.seed = o.seed + requests.size();
    request.max_new_tokens = o.max_frames.value_or(speaks_noise(config) ? kFramesOfNoise : kUsualFrames);
    request.quirks.keep_last_frame_without_end = true;
    request.chunk_length = 0;
    request.delivery = Delivery::whole;
    try {
      validate_request(request, config.model);
    } catch (const Error& error) {
      fail(error.code(), place, ": ", error.message());
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

class EvaluationRun {
 public:
  explicit EvaluationRun(const EvaluateOptions& options)
      : o_(options),
        side_(side_config(options)),
        reference_(reference_config(options, side_)),
        bar_(wants_progress(options.json == "-")) {
    for (const EngineConfig* config : {&side_, &reference_}) check_side(*config);
    plan_.requests = requests_of(options, side_);
    plan_.greedy = !options.logits_only && !speaks_noise(side_) && !speaks_noise(reference_);
    plan_.cepstra = plan_.greedy && !options.no_sound;
    if (options.gates.max_length_ratio && !plan_.greedy)
      fail(ErrorCode::invalid_argument,
           "max_length_ratio: random weights never end, so they have no lengths that could be compared");
    if (writes_file() && !std::ofstream(o_.json, std::ios::app))
      fail(ErrorCode::io, printable(o_.json), ": cannot be written");
    for (const char* side : {"side", "reference"})
      if (!o_.keep_sound.empty()) kept_.emplace(side, o_.keep_sound + "/" + side);
    const auto planned = [&](const EngineConfig& config) {
      return quality::side_of(config_for_one(config, plan_.requests.front()));
    };
    result_ = {{"schema", "shoal-evaluation-1"},
               {"texts", plan_.requests.size()},
               {"side", planned(side_)},
               {"reference", planned(reference_)},
               {"logits", nullptr},
               {"sampled", nullptr},
               {"greedy", nullptr}};
  }

  void run() {
    const quality::Speaker expected = speak(reference_, "reference");
    if (!o_.logits_only) {
      const quality::Speaker other = speak(side_, "side");
      for (const quality::Mode mode : {quality::kSampled, quality::kGreedy})
        if (plan_.greedy)
          result_[quality::kModeNames[mode]] =
              quality::compare_speech(expected.texts[mode], other.texts[mode]);
    }
    std::vector<quality::ForcedText> texts;
    for (size_t i = 0; i < plan_.requests.size(); ++i)
      texts.push_back({plan_.requests[i], expected.texts[quality::kSampled][i].codes});
    const auto forced = open_forced_logits(reference_), other = open_forced_logits(side_);
    result_["logits"] =
        quality::compare_logits(*forced, *other, texts, [&](size_t text) { step("logits", text); });
    report();
  }

 private:
  bool writes_file() const { return !o_.json.empty() && o_.json != "-"; }

  void step(const std::string& what, size_t text) {
    if (interrupt_.received()) fail(ErrorCode::cancelled, "interrupted");
    const auto all = static_cast<double>(plan_.requests.size());
    bar_.show(static_cast<double>(text) / all,
              concat(what, ": text ", text + 1, " of ", plan_.requests.size()));
  }

  quality::Speaker speak(const EngineConfig& config, const char* name) {
    plan_.on_text = [this, name](size_t text) { step(name, text); };
    plan_.on_sound = nullptr;
    if (const auto kept = kept_.find(name); kept != kept_.end())
      plan_.on_sound = [&](quality::Mode mode, size_t text, std::span<const float> samples, int rate_hz) {
        kept->second.keep(quality::kModeNames[mode], mode, text, plan_.requests[text].text, samples, rate_hz);
      };
    quality::Speaker speaker = quality::speak(config, plan_);
    result_[name]["real_time_factor"] = speaker.real_time_factor;
    return speaker;
  }

  void report() {
    bar_.clear();
    const std::vector<std::string> missed = quality::missed_gates(result_, o_.gates);
    result_["missed_gates"] = missed;
    const std::string json = result_.dump(1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
    if (writes_file()) {
      std::ofstream file(o_.json, std::ios::trunc);
      file << json;
      file.close();
      if (!file) fail(ErrorCode::io, printable(o_.json), ": cannot be written");
    }
    std::cout << (o_.json == "-" ? json : quality::table_of(result_)) << std::flush;
    std::string all;
    for (const std::string& gate : missed) all += (all.empty() ? "" : "; ") + gate;
    if (!all.empty()) fail(ErrorCode::unavailable, "evaluate: ", all);
  }

  const EvaluateOptions& o_;
  const EngineConfig side_, reference_;
  quality::SpeakPlan plan_;
  std::map<std::string, KeptSounds> kept_;  // by side
  ProgressBar bar_;
  const InterruptGuard interrupt_;
  ordered_json result_;
};

}  // namespace

void run_evaluation(const EvaluateOptions& options) { EvaluationRun(options).run(); }

}  // namespace shoal::cli
