// shoal bench: the speed of this machine, compared with its limits.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "bench/machine.h"
#include "bench/report.h"
#include "bench/speech/compute_session.h"
#include "bench/speech/random_models.h"
#include "bench/speech/speech_figures.h"
#include "cli/bench_engine.h"
#include "cli/bench_report.h"
#include "cli/bench_serve.h"
#include "cli/cli.h"
#include "cli/integer_option.h"
#include "cli/number_option.h"
#include "cli/progress.h"
#include "cli/session.h"

namespace shoal::cli {
namespace {

using bench::ComputeSession;
using bench::json_of;
using nlohmann::ordered_json;

constexpr const char* kText =
    "The quick brown fox jumps over the lazy dog, and then it rests for a while in the warm sun.";

struct BenchOptions {
  std::string random;  // of random_benches(), or empty: the voice of `model`
  std::string model, precision;
  std::string text;
  std::vector<int> batches;  // empty: the device's default list
  int context = 0;           // 0: the device's default
  bool no_load = false, json = false;
  ComputeOptions compute;
};

ordered_json json_of(const bench::SpeechFigures& f) {
  return {{"model", f.model},
          {"precision", f.precision},
          {"formats", f.formats},
          {"device", f.device},
          {"audio_s", f.audio_s},
          {"times_real_time", f.times_real_time},
          {"first_audio_ms", f.first_audio_ms},
          {"frames_per_s", f.frames_per_s},
          {"load_s", f.load_s}};
}

using bench::print;

void print(const bench::SpeechFigures& f) {
  std::printf(
      "speech      %s, %s, %s: %.1f s of sound, %.1fx real time, first audio after %.*f ms, %.0f frames/s, "
      "loaded in %.2f s\n",
      f.model.c_str(), f.formats.c_str(), f.device.c_str(), f.audio_s, f.times_real_time,
      f.first_audio_ms < 20 ? 1 : 0, f.first_audio_ms, f.frames_per_s, f.load_s);
}

void check(const BenchOptions& options) {
  if (!options.random.empty() && (!options.model.empty() || !options.text.empty()))
    fail(ErrorCode::invalid_argument,
         "bench: --random measures random weights; --model and --text go without it");
  if (options.random.empty() && (options.no_load || !options.batches.empty()))
    fail(ErrorCode::invalid_argument, "bench: --no-load and --batches go with --random");
  if (options.no_load && !bench::random_bench(options.random).can_load)
    fail(ErrorCode::invalid_argument, "bench: --no-load goes with --random s1-mini or s2-pro");
  if (options.context > 0 && (options.random.empty() || !bench::random_bench(options.random).can_load))
    fail(ErrorCode::invalid_argument, "bench: --context goes with --random s1-mini or s2-pro");
}

// Figures as they come: printed at once, or gathered for one piece of JSON.
class Report {
 public:
  explicit Report(bool as_json) : as_json_(as_json), bar_(wants_progress(as_json)) {}

  void on_part(const std::string& name) { bar_.show(part_ = std::min(0.95, part_ + 0.07), name); }
  template <typename Figures>
  void add(const char* key, const Figures& figures) {
    add(key, json_of(figures), [&] { print(figures); });
  }
  void add(const char* key, ordered_json json, const std::function<void()>& print_figures) {
    bar_.clear();
    report_[key] = std::move(json);
    if (as_json_) return;
    print_figures();
    std::fflush(stdout);
  }
  void end() const {
    if (as_json_) std::cout << report_.dump(1) << std::endl;
  }

 private:
  bool as_json_;
  ProgressBar bar_;
  double part_ = 0;
  ordered_json report_;
};

bench::RandomBenchOptions random_options(const BenchOptions& options, const EngineConfig& compute,
                                         Report& report) {
  return {.precision = parse_precision(chosen_precision(options.precision)),
          .weights = compute.weights,
          .kv_precision = compute.kv_precision,
          .codec_weights = compute.codec_weights,
          .semantic_only = compute.semantic_only,
          .batches = options.batches,
          .context = options.context,
          .with_load = !options.no_load,
          .on_part = [&](const std::string& name) { report.on_part(name); },
          .on_figures =
              [&](const char* key, ordered_json json, const std::function<void()>& print_figures) {
                report.add(key, std::move(json), print_figures);
              }};
}

bench::SpeechBenchOptions speech_options(const BenchOptions& options, const EngineConfig& compute,
                                         const ComputeSession& session) {
  EngineConfig config;
  config.model = chosen_model(options.model);
  config.device = session.device_setting();
  config.precision = parse_precision(chosen_precision(options.precision));
  config.weights = compute.weights;
  config.kv_precision = compute.kv_precision;
  config.codec_weights = compute.codec_weights;
  config.cuda_graphs = compute.cuda_graphs;
  config.semantic_only = compute.semantic_only;
  config.threads = compute.threads;
  config.with_encoder = false;
  return {.config = config, .text = options.text.empty() ? kText : options.text};
}

void run_bench(const BenchOptions& options) {
  check(options);
  const EngineConfig compute = options.compute.config();
  ComputeSession session(compute);
  bench::check_precision(parse_precision(chosen_precision(options.precision)), session);
  Report report(options.json);
  report.on_part("measuring the machine");
  const bench::MachineLimits limits = bench::measure_machine(session.context());
  report.add("machine", limits);
  if (options.random.empty()) {
    report.on_part("speaking");
    report.add("speech", bench::bench_speech(speech_options(options, compute, session)));
  } else {
    bench::random_bench(options.random).run(limits, random_options(options, compute, report), session);
  }
  report.end();
}

}  // namespace

void add_bench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  BenchOptions& o = *options;
  CLI::App& command = *app.add_subcommand("bench", "Measure speed, beside the limits of this machine");
  command.footer(
      "Examples:\n"
      "  shoal bench                        the built-in voice, end to end\n"
      "  shoal bench --random s1-mini       random weights at S1-mini's sizes: decode, prefill, codec, load, "
      "memory\n"
      "  shoal bench --random s1-mini --device cuda --semantic-only --json\n"
      "  shoal bench --random kokoro --threads 2     8 s of speech, 3 frames a phoneme\n"
      "  shoal bench engine --help          many users at a time\n"
      "  shoal bench serve --help           load on any speech server, through HTTP\n"
      "  shoal bench report --help          what was measured, as a page");
  command.add_option("--random", o.random, "sizes of random weights: " + bench::list_of_random_benches())
      ->check(one_of(bench::names_of_random_benches()));
  command.add_option("--model", o.model,
                     "model folder to speak with; default: $SHOAL_MODEL, or the built-in voice");
  command.add_option("--precision", o.precision, "auto, float32, bfloat16, float16");
  command.add_option("--text", o.text, "what to speak; default: a sentence");
  add_integers(command, "--batches", {1, 4096}, o.batches,
               "with --random: sequences that a decode step advances; default: 1,4,8, on a GPU 1,8,64,256; "
               "of kokoro: utterances of 8 s spoken together; default: 1,2,4, on a GPU 1,2,4,8,16,32")
      ->type_name("N,N,...");
  add_integer(command, "--context", {1, 4096}, store_in(o.context),
              "with --random s1-mini or s2-pro: positions that a sequence has before decode, rounded up to "
              "pages of 32; default: 288, on a GPU 256 (the middle step then reads 300)");
  command.add_flag("--no-load", o.no_load,
                   "with --random s1-mini or s2-pro: skip writing and loading a checkpoint (3.3 or 10.7 GB "
                   "of temporary disk)");
  o.compute.add_to(command);
  command.add_flag("--json", o.json, "print the figures as JSON");
  add_bench_engine(command);
  add_bench_serve(command);
  add_bench_report(command);
  command.require_subcommand(0, 1);
  command.callback([options, &command] {
    if (command.get_subcommands().empty()) run_bench(*options);
  });
}

}  // namespace shoal::cli
