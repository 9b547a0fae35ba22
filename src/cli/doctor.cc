// shoal doctor: whether the program speaks here, with the settings that `shoal serve` would have.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <unistd.h>
#include <vector>

#include "audio/clip.h"
#include "base/error.h"
#include "cli/cli.h"
#include "cli/colour.h"
#include "cli/engine_settings.h"
#include "cli/help.h"
#include "shoal/engine.h"
#include "shoal/model.h"

namespace shoal::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* kSentence = "This is how I sound.";

struct DoctorOptions {
  EngineSettings settings;
  std::string voice;
  bool json = false;
};

struct Finding {
  std::string check, outcome, words;
};

std::string painted(const std::string& outcome) {
  const Colour colour = outcome == "ok" ? Colour::green : outcome == "skipped" ? Colour::yellow : Colour::red;
  return in_colour(outcome, colour, STDOUT_FILENO);
}

// Runs checks in order; the checks after a failure depend on it and are skipped.
class Examination {
 public:
  explicit Examination(bool prints) : prints_(prints) {}

  // `look` returns a description of the result, and throws on failure.
  void check(const char* name, const std::function<std::string()>& look) {
    if (failed()) return add({name, "skipped", ""});
    try {
      add({name, "ok", look()});
    } catch (const std::exception& error) {
      error_ = error.what();
      if (const auto* known = dynamic_cast<const Error*>(&error)) code_ = known->code();
      add({name, "FAILED", error_});
    }
  }
  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }
  ErrorCode code() const { return code_; }  // of the failure
  const std::vector<Finding>& findings() const { return findings_; }

 private:
  void add(Finding finding) {
    if (prints_) {
      std::printf("%-11s %s%s%s\n", finding.check.c_str(), painted(finding.outcome).c_str(),
                  finding.words.empty() ? "" : ": ", finding.words.c_str());
      std::fflush(stdout);
    }
    findings_.push_back(std::move(finding));
  }

  const bool prints_;
  std::vector<Finding> findings_;
  std::string error_;
  ErrorCode code_ = ErrorCode::internal;
};

std::string model_of(const Health& health) {
  int64_t bytes = 0;
  for (const MemoryPart& part : health.memory) bytes += part.bytes;
  return concat(health.model, ", ", in_words(health.formats), " on ", health.device, ", ", bytes >> 20,
                " MiB in all");
}

std::string arithmetic_of(const SelfTest& test) {
  if (!test.error.empty()) fail(ErrorCode::internal, test.error);
  return concat("a product on ", test.device, " is that of the CPU");
}

std::string voice_of(Engine& engine, const std::string& name) {
  const size_t named = engine.voices().list().size();
  if (name.empty()) return concat("the model's own; ", named, " that can be named");
  engine.voices().get(name);
  return name;
}

std::string speech_of(Engine& engine, const std::string& voice) {
  SpeechRequest request;
  request.text = kSentence;
  request.voice = voice;
  request.seed = 42;
  Speech speech = engine.submit(std::move(request));
  const std::vector<float> samples = speech.read_all();
  const SpeechSummary summary = speech.summary();
  if (samples.empty() || audio::is_silent(samples))
    fail(ErrorCode::internal, "speech: expected sound, got ", samples.size(), " samples of silence");
  char figures[96];
  std::snprintf(figures, sizeof figures, "%.1f s of sound in %.1f s, the first after %.0f ms",
                summary.audio_s(), summary.total_s, summary.first_audio_s * 1e3);
  return figures;
}

// The fields of GET /test/gpu, and the checks.
void print_json(const Examination& examination, const SelfTest& test) {
  ordered_json checks = ordered_json::array();
  for (const auto& [check, outcome, words] : examination.findings())
    checks.push_back({{"check", check}, {"outcome", outcome}, {"found", words}});
  ordered_json report = {{"device", test.device},
                         {"gpu_available", test.gpu_available},
                         {"mps_available", false},
                         {"gpu_memory_allocated_mb", static_cast<double>(test.gpu_memory_bytes) / (1 << 20)},
                         {"test_tensor_device", test.device},
                         {"pipeline_device", test.device},
                         {"checks", std::move(checks)}};
  if (examination.failed()) report["error"] = examination.error();
  std::cout << report.dump(1) << std::endl;
}

void examine(const DoctorOptions& options) {
  if (options.settings.wants_print()) {
    std::cout << print_settings(options.settings.resolve());
    return;
  }
  EngineConfig config = options.settings.resolve().config;
  config.warm_up = false;  // it speaks below
  Examination examination(!options.json);
  SelfTest test;
  std::optional<Engine> engine;
  examination.check("device", [&] { return resolve_device(config.device); });
  examination.check("model", [&] {
    engine.emplace(config).start();
    return model_of(engine->health());
  });
  examination.check("arithmetic", [&] { return arithmetic_of(test = engine->self_test()); });
  examination.check("voice", [&] { return voice_of(*engine, options.voice); });
  examination.check("speech", [&] { return speech_of(*engine, options.voice); });
  if (options.json) print_json(examination, test);
  if (examination.failed()) fail(examination.code(), "doctor: it does not speak here");
}

}  // namespace

void add_doctor(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App& command = *app.add_subcommand(
      "doctor", "Check device, model, arithmetic and voice, and speak a sentence: a line for each");
  command.footer(
      "Exit code: 0 when all is well, 2 when a setting or a file is wrong, 1 when the machine or Shoal is.\n"
      "Example:\n"
      "  shoal doctor --model ~/checkpoints/openaudio-s1-mini --device cuda");
  command.add_option("--voice", options->voice, "a named voice to speak with; default: the model's own");
  command.add_flag("--json", options->json, "print the report as JSON");
  options->settings.add_to(command);
  command.callback([options] { examine(*options); });
  show_first(command, {"--model", "--device", "--precision", "--voice", "--references-dir", "--json",
                       "--config", "--print-config"});
}

}  // namespace shoal::cli
