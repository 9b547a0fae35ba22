#include "cli/load_run.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "bench/engine/load_level.h"
#include "bench/engine/load_table.h"
#include "bench/engine/voices.h"
#include "bench/measure/texts.h"
#include "bench/report.h"
#include "bench/speech/compute_session.h"
#include "cli/formats_json.h"
#include "cli/interrupt.h"
#include "cli/load_json.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "shoal/engine.h"
#include "shoal/model.h"

namespace shoal::cli {
namespace {

using nlohmann::ordered_json;

constexpr double kOpenLoop_s = 30;
constexpr int kOpenLoopWarmUp = 4;
constexpr double kVoiceSeconds = 5;
constexpr const char* kUsualPhonemes = "20-300";
constexpr int64_t kMostPieces = 1 << 20;  // frames or phonemes of a request

int64_t whole_number(std::string_view text, const std::string& whole, const char* name) {
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value > kMostPieces)
    fail(ErrorCode::invalid_argument, name, ": expected N or N-M, 1 to ", kMostPieces, ", got \"", whole,
         "\"");
  return value;
}

// "N" or "N-M"; an empty text: 0 and 0.
std::pair<int64_t, int64_t> range_of(const std::string& given, const char* name) {
  if (given.empty()) return {0, 0};
  const std::string_view text = given;
  const size_t dash = std::min(text.find('-'), text.size());
  const int64_t least = whole_number(text.substr(0, dash), given, name);
  const int64_t most = dash == text.size() ? least : whole_number(text.substr(dash + 1), given, name);
  if (most < 1) fail(ErrorCode::invalid_argument, name, ": expected 1 or more, got \"", given, "\"");
  return {least, most};
}

// Options that the model ignores.
void check_traits(const LoadOptions& o, const ModelTraits& traits) {
  const auto refuse = [&](bool given, const char* name, const char* why) {
    if (given) fail(ErrorCode::invalid_argument, "bench engine: ", name, ": ", why);
  };
  if (!traits.phonemes) refuse(!o.phonemes.empty(), "--phonemes", "only Kokoro models read them");
  if (traits.phonemes)
    refuse(!o.frames.empty(), "--frames",
           "a Kokoro model decides how long it speaks; --phonemes says how much");
  if (!traits.references) {
    const char* const kVoices = "a Kokoro model has voices of its own";
    refuse(o.voices != 0, "--voices", kVoices);
    refuse(o.voice_seconds.has_value(), "--voice-seconds", kVoices);
    refuse(o.shared_voice.has_value(), "--shared-voice", kVoices);
  }
  refuse(!o.phonemes.empty() && !o.texts.empty(), "--phonemes", "there are --texts already");
}

bench::WorkloadOptions workload_of(const LoadOptions& o, const ModelTraits& traits) {
  check_traits(o, traits);
  bench::WorkloadOptions workload{.shared_voice = o.shared_voice, .seed = o.seed};
  if (!o.texts.empty()) workload.texts = bench::read_texts(o.texts);
  std::tie(workload.min_frames, workload.max_frames) = range_of(o.frames, "frames");
  if (traits.phonemes && o.texts.empty()) {
    std::tie(workload.min_phonemes, workload.max_phonemes) =
        range_of(o.phonemes.empty() ? kUsualPhonemes : o.phonemes, "phonemes");
  }
  return workload;
}

template <typename Number>
Number over_zero(const std::optional<Number>& given, const char* name) {
  if (given && !(*given > 0)) fail(ErrorCode::invalid_argument, name, ": expected more than 0, got ", *given);
  return given.value_or(0);
}

// Without requests and duration a closed loop asks four times for each user, and an open loop lasts 30 s.
std::vector<bench::LevelPlan> levels_of(const LoadOptions& o) {
  bench::LevelPlan plan{
      .rate_per_s = over_zero(o.rate_per_s, "rate"),
      .requests = over_zero(o.requests, "requests"),
      .duration_s = over_zero(o.duration_s, "duration"),
      .listening = o.listen == "fast" ? bench::Listening::fast : bench::Listening::real_time,
      .seed = o.seed};
  std::vector<bench::LevelPlan> levels;
  const bool endless = plan.requests == 0 && plan.duration_s == 0;
  if (plan.open_loop()) {
    if (endless) plan.duration_s = kOpenLoop_s;
    levels.push_back(plan);
  } else {
    for (const int users : o.concurrency) {
      plan.users = users;
      if (endless) plan.requests = std::max(8, 4 * users);
      levels.push_back(plan);
    }
  }
  for (const bench::LevelPlan& level : levels) level.validate();
  return levels;
}

ResolvedSettings settings_of(const LoadOptions& o) {
  ResolvedSettings settings = o.settings.resolve();
  if (o.random.empty()) return settings;
  for (ResolvedSettings::Origin& origin : settings.origins) {
    if (origin.key != "model") continue;
    if (origin.source.starts_with("flag"))
      fail(ErrorCode::invalid_argument,
           "bench engine: --random measures random weights; --model goes without it");
    origin.source = "flag --random";
  }
  settings.config.model = "random:" + o.random;
  return settings;
}

// A report that cannot be written is known before an hour of measuring.
void check_writable(const std::string& path) {
  if (path.empty() || path == "-") return;
  if (!std::ofstream(path, std::ios::app)) fail(ErrorCode::io, path, ": cannot be written");
}

void write_report(const std::string& path, const ordered_json& report) {
  if (path.empty()) return;
  const std::string text = report.dump(1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
  if (path == "-") {
    std::cout << text << std::flush;
    return;
  }
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  if (!file) fail(ErrorCode::io, path, ": cannot be written");
}

std::string title_of(const bench::LevelPlan& plan) {
  return plan.open_loop() ? concat(plan.rate_per_s, " requests/s") : concat(plan.users, " at a time");
}

// One run of the command.
class LoadRun {
 public:
  explicit LoadRun(const LoadOptions& options)
      : options_(options),
        plans_(levels_of(options)),
        settings_(settings_of(options)),
        traits_(traits_of(settings_.config.model)),
        workload_(workload_of(options, traits_)),
        bar_(wants_progress(options.json == "-")) {
    bench::check(voice_options());
    bench::check(workload_, options.voices);
    check_writable(options.json);
    const int warm_up = options.warm_up_requests.value_or(0);
    if (warm_up < 0 || warm_up > 256)
      fail(ErrorCode::invalid_argument, "warm-up-requests: expected 0 to 256, got ", warm_up);
  }

  void run() {
    if (options_.limits) measure_limits();
    const std::string device = settings_.config.device;
    const std::optional<int64_t> free_before = bench::free_device_memory(device);
    Engine engine(settings_.config);
    bar_.show(0, "loading the model");
    engine.start();
    describe(engine);
    const bench::Workload workload(workload_,
                                   bench::make_voices(engine, voice_options(), [this] { return stopped(); }));
    for (bench::LevelPlan& plan : plans_) {
      warm_up(engine, workload, plan);
      if (stopped()) break;
      plan.first_request = next_request_;
      figures_.push_back(measure(engine, workload, plan, title_of(plan)));
    }
    if (free_before) report_["device_bytes"] = *free_before - *bench::free_device_memory(device);
    engine.stop();
    report();
    if (stopped()) fail(ErrorCode::cancelled, "interrupted");
  }

 private:
  bench::VoiceOptions voice_options() const {
    return {.count = options_.voices,
            .seconds = options_.voice_seconds.value_or(kVoiceSeconds),
            .seed = static_cast<uint64_t>(options_.seed)};
  }
  bool stopped() const { return interrupt_.received(); }
  bool prints() const { return options_.json != "-"; }

  void measure_limits() {
    bar_.show(0, "measuring the machine");
    const bench::MachineLimits limits = [this] {
      bench::ComputeSession session(settings_.config);
      settings_.config.device = session.device_setting();  // the engine need not choose again
      return bench::measure_machine(session.context());
    }();
    report_["machine"] = bench::json_of(limits);
    bar_.clear();
    if (prints()) bench::print(limits);
  }

  void describe(const Engine& engine) {
    const Health health = engine.health();
    report_["model"] = health.model;
    add_formats(report_, health.formats);
    report_["device"] = health.device;
    report_["settings"] = print_settings(settings_, engine_settings());
    bar_.clear();
    if (!prints()) return;
    std::printf("engine      %s, %s, %s\n\n", health.model.c_str(), in_words(health.formats).c_str(),
                health.device.c_str());
    std::fflush(stdout);  // the levels may take long
  }

  // Requests before the measurement, so that every level starts with warm workspaces and caches.
  void warm_up(Engine& engine, const bench::Workload& workload, bench::LevelPlan plan) {
    const int count = options_.warm_up_requests.value_or(plan.open_loop() ? kOpenLoopWarmUp : plan.users);
    if (count == 0) return;
    plan = {.users = count, .requests = count, .first_request = next_request_};
    const bench::LevelFigures figures = measure(engine, workload, plan, "warming up");
    if (figures.requests.completed == 0 && figures.first_error && !figures.interrupted)
      throw Error(*figures.first_error);
  }

  bench::LevelFigures measure(Engine& engine, const bench::Workload& workload, const bench::LevelPlan& plan,
                              const std::string& title) {
    const bench::LevelWatch watch{.interrupted = [this] { return stopped(); },
                                  .on_progress =
                                      [&](const bench::LevelProgress& p) {
                                        char text[128];
                                        std::snprintf(text, sizeof text,
                                                      "%s: %lld of %lld ended, %.1f s of speech a second",
                                                      title.c_str(), static_cast<long long>(p.ended),
                                                      static_cast<long long>(p.submitted), p.audio_s_per_s);
                                        bar_.show(p.fraction, text);
                                      }};
    bench::LevelFigures figures = bench::run_level(engine, workload, plan, watch);
    next_request_ += static_cast<uint64_t>(figures.requests.submitted);
    bar_.clear();
    return figures;
  }

  ordered_json workload() const {
    return {{"texts", options_.texts.empty() ? "built-in sentences" : options_.texts},
            {"frames", options_.frames.empty() ? "as the model ends" : options_.frames},
            {"voices", options_.voices},
            {"voice_seconds", voice_options().seconds},
            {"shared_voice", options_.shared_voice ? ordered_json(*options_.shared_voice) : nullptr},
            {"seed", options_.seed}};
  }
  ordered_json workload_of_phonemes() const {
    if (!options_.texts.empty()) return {{"texts", options_.texts}, {"seed", options_.seed}};
    return {{"phonemes", options_.phonemes.empty() ? kUsualPhonemes : options_.phonemes},
            {"seed", options_.seed}};
  }

  void report() {
    report_["workload"] = traits_.phonemes ? workload_of_phonemes() : workload();
    report_.update(load_json(figures_));
    if (prints()) {
      std::fputs(bench::load_table(figures_).c_str(), stdout);
      if (const auto taken = report_.find("device_bytes"); taken != report_.end())
        std::printf("device memory in use by the engine: %.2f GB\n", taken->get<double>() / 1e9);
    }
    write_report(options_.json, report_);
  }

  const LoadOptions& options_;
  std::vector<bench::LevelPlan> plans_;
  ResolvedSettings settings_;
  const ModelTraits traits_;
  const bench::WorkloadOptions workload_;
  ProgressBar bar_;
  const InterruptGuard interrupt_;
  ordered_json report_;
  std::vector<bench::LevelFigures> figures_;
  uint64_t next_request_ = 0;
};

}  // namespace

void run_load(const LoadOptions& options) {
  if (options.settings.wants_print()) {
    std::cout << print_settings(settings_of(options)) << std::flush;
    return;
  }
  LoadRun(options).run();
}

}  // namespace shoal::cli
