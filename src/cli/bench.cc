// shoal bench: how fast this machine is, beside what it could be.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "bench/load_figures.h"
#include "bench/machine.h"
#include "bench/model_figures.h"
#include "bench/report.h"
#include "bench/speech/speech_figures.h"
#include "cli/bench_engine.h"
#include "cli/cli.h"
#include "cli/load_json.h"
#include "cli/progress.h"
#include "cli/session.h"

namespace shoal::cli {
namespace {

using cli::json_of;
using nlohmann::ordered_json;

constexpr const char* kText =
    "The quick brown fox jumps over the lazy dog, and then it rests for a while in the warm sun.";

struct BenchOptions {
  std::string random;  // "s1-mini", or empty: the voice of `model`
  std::string model, precision;
  std::string text;
  bool no_load = false, json = false;
  ComputeOptions compute;
};

ordered_json json_of(const bench::ModelFigures& f) {
  ordered_json decode = ordered_json::array();
  for (const bench::DecodeFigures& d : f.decode) {
    decode.push_back({{"batch", d.batch},
                      {"step_ms", d.step_ms},
                      {"frames_per_s", d.frames_per_s},
                      {"gb_read_per_step", d.gb_read},
                      {"share_of_read_limit", d.share_of_read_limit}});
  }
  return {{"model", f.name},
          {"dtype", f.dtype},
          {"decode", decode},
          {"prefill",
           {{"columns", f.prefill.columns},
            {"columns_per_s", f.prefill.columns_per_s},
            {"gflop_per_s", f.prefill.gflop_per_s},
            {"share_of_compute_limit", f.prefill.share_of_compute_limit}}},
          {"codec",
           {{"decode_times_real_time", f.codec.decode_times_real_time},
            {"decode_gflop_per_s", f.codec.decode_gflop_per_s},
            {"decode_share_of_compute_limit", f.codec.decode_share_of_compute_limit},
            {"encode_times_real_time", f.codec.encode_times_real_time},
            {"encode_gflop_per_s", f.codec.encode_gflop_per_s},
            {"encode_share_of_compute_limit", f.codec.encode_share_of_compute_limit},
            {"first_frame_ms", f.codec.first_frame_ms}}},
          {"language_model_bytes", f.language_model_bytes},
          {"codec_bytes", f.codec_bytes},
          {"peak_resident_bytes", f.peak_resident_bytes}};
}

ordered_json json_of(const bench::LoadFigures& f) {
  return {{"language_model_s", f.language_model_s},
          {"codec_s", f.codec_s},
          {"total_s", f.total_s()},
          {"file_bytes", f.file_bytes},
          {"weight_bytes", f.weight_bytes},
          {"peak_resident_bytes", f.peak_resident_bytes}};
}

ordered_json json_of(const bench::SpeechFigures& f) {
  return {{"model", f.model},
          {"precision", f.precision},
          {"audio_s", f.audio_s},
          {"times_real_time", f.times_real_time},
          {"first_audio_ms", f.first_audio_ms},
          {"frames_per_s", f.frames_per_s},
          {"load_s", f.load_s}};
}

using bench::print;

void print(const bench::SpeechFigures& f) {
  std::printf(
      "speech      %s, %s: %.1f s of sound, %.1fx real time, first audio after %.0f ms, %.0f frames/s, "
      "loaded in %.2f s\n",
      f.model.c_str(), f.precision.c_str(), f.audio_s, f.times_real_time, f.first_audio_ms, f.frames_per_s,
      f.load_s);
}

DType dtype_of(const std::string& precision) {
  return parse_precision(precision) == Precision::float32 ? DType::f32 : DType::bf16;
}

void check(const BenchOptions& options) {
  parse_precision(chosen_precision(options.precision));
  if (!options.random.empty() && (!options.model.empty() || !options.text.empty()))
    fail(ErrorCode::invalid_argument,
         "bench: --random measures random weights; --model and --text go without it");
  if (options.random.empty() && options.no_load)
    fail(ErrorCode::invalid_argument, "bench: --no-load goes with --random");
}

void run_bench(const BenchOptions& options) {
  check(options);
  ComputeSession session(options.compute);
  ProgressBar bar(wants_progress(options.json));
  double part = 0;
  const auto on_part = [&](const std::string& name) { bar.show(part = std::min(0.95, part + 0.09), name); };

  ordered_json report;
  const auto add = [&](const char* key, const auto& figures) {
    bar.clear();
    report[key] = json_of(figures);
    if (!options.json) print(figures);
  };
  on_part("measuring the machine");
  const bench::MachineLimits limits = bench::measure_machine(session.context());
  add("machine", limits);
  if (options.random.empty()) {
    on_part("speaking");
    EngineConfig config;
    config.model = chosen_model(options.model);
    config.precision = parse_precision(chosen_precision(options.precision));
    config.threads = options.compute.threads();
    config.with_encoder = false;
    add("speech",
        bench::bench_speech({.config = config, .text = options.text.empty() ? kText : options.text}));
  } else {
    if (!options.no_load) {
      on_part("loading a checkpoint");
      add("load",
          bench::bench_s1_mini_load(dtype_of(chosen_precision(options.precision)), session.context()));
    }
    bench::ModelBenchOptions model_options;
    model_options.dtype = dtype_of(chosen_precision(options.precision));
    model_options.on_part = on_part;
    add("random", bench::bench_s1_mini(limits, model_options, session.context()));
  }
  if (options.json) std::cout << report.dump(1) << std::endl;
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
      "  shoal bench engine --help          many users at a time");
  command.add_option("--random", o.random, "sizes of random weights: s1-mini")
      ->check(CLI::IsMember({"s1-mini"}));
  command.add_option("--model", o.model,
                     "model folder to speak with; default: $SHOAL_MODEL, or the built-in voice");
  command.add_option("--precision", o.precision, "auto, float32, bfloat16 (auto: bfloat16 with --random)");
  command.add_option("--text", o.text, "what to speak; default: a sentence");
  command.add_flag("--no-load", o.no_load,
                   "with --random: skip writing and loading a checkpoint (3.3 GB of temporary disk)");
  o.compute.add_to(command);
  command.add_flag("--json", o.json, "print the figures as JSON");
  add_bench_engine(command);
  command.require_subcommand(0, 1);
  command.callback([options, &command] {
    if (command.get_subcommands().empty()) run_bench(*options);
  });
}

}  // namespace shoal::cli
