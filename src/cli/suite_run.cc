#include "cli/suite_run.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "bench/runs/csv.h"
#include "bench/runs/provenance.h"
#include "bench/runs/report_page.h"
#include "bench/runs/run_files.h"
#include "bench/runs/run_folder.h"
#include "bench/speech/compute_session.h"
#include "bench/suite/configuration.h"
#include "bench/suite/speak.h"
#include "bench/timing.h"
#include "cli/bench_report.h"
#include "cli/interrupt.h"
#include "cli/progress.h"

namespace shoal::cli {
namespace {

using nlohmann::ordered_json;

std::vector<suite::NamedText> texts_of(const SuiteOptions& o) {
  const std::vector<suite::NamedText> usual = suite::usual_texts();
  if (o.texts.empty()) return usual;
  std::vector<suite::NamedText> texts;
  for (const std::string& name : o.texts) {
    const auto found = std::ranges::find(usual, name, &suite::NamedText::name);
    if (found == usual.end())
      fail(ErrorCode::invalid_argument, "texts: expected short, medium or long, got \"", name, "\"");
    if (std::ranges::find(texts, name, &suite::NamedText::name) == texts.end()) texts.push_back(*found);
  }
  return texts;
}

// What is wrong with a path is known before an hour of measuring.
void check_output_file(const std::string& path) {
  if (!path.empty() && !std::ofstream(path, std::ios::app)) fail(ErrorCode::io, path, ": cannot be written");
}

class SuiteRun {
 public:
  explicit SuiteRun(const SuiteOptions& o)
      : options_(o),
        config_(o.settings.resolve().config),
        plan_{.samples = o.samples,
              .batch = o.batch,
              .warm_up = o.warm_up,
              .seed = o.seed,
              .texts = texts_of(o),
              .began_s = bench::now_s()},
        configurations_(suite::configurations_of(
            config_, o.configurations.empty() ? suite::keys_of_configurations() : o.configurations)),
        bar_(wants_progress(false)) {
    if (!o.output.empty() && !runs::can_draw_reports()) runs::report_page({});  // says why not
    check_output_file(o.output);
    check_output_file(o.json);
    const bench::ComputeSession session(config_);
    config_device_ = session.device_setting();
    folder_.emplace(o.folder, run_json());
  }

  void run() {
    try {
      go_through();
      folder_->end("completed", "");
    } catch (const Error& error) {
      bar_.clear();
      folder_->end(error.code() == ErrorCode::cancelled ? "interrupted" : "failed", error.message());
      write_results();
      throw;
    }
    write_results();
    std::printf("\n%s\nthe run: %s\n", suite::table_of(figures_).c_str(), folder_->path().c_str());
  }

 private:
  ordered_json run_json() const {
    ordered_json names = ordered_json::array(), texts = ordered_json::object();
    for (const suite::Configuration& each : configurations_) names.push_back(each.key);
    for (const suite::NamedText& each : plan_.texts) texts[each.name] = each.text;
    const ordered_json settings = {
        {"model", config_.model},       {"device", config_device_},     {"threads", config_.threads},
        {"configurations", names},      {"num_samples", plan_.samples}, {"batch_size", plan_.batch},
        {"warmup_runs", plan_.warm_up}, {"seed", plan_.seed},           {"texts", texts}};
    ordered_json run = {{"kind", "suite"}};
    run.update(runs::provenance());
    run["config_hash"] = runs::config_hash(settings);
    run["seed"] = plan_.seed;
    run["suite"] = settings;
    return run;
  }

  void go_through() {
    std::printf("Shoal benchmark\ndevice: %s\n", config_device_.c_str());
    const ordered_json machine = runs::provenance()["machine"];
    std::printf("machine: %s, %d threads\n", machine["processor"].get<std::string>().c_str(),
                machine["threads"].get<int>());
    for (size_t i = 0; i < configurations_.size(); ++i) measure(i);
    if (figures_.empty()) fail(ErrorCode::unsupported, "none of the configurations exists here");
  }

  void measure(size_t number) {
    const suite::Configuration& configuration = configurations_[number];
    std::printf("\n[%zu/%zu] %s ...\n", number + 1, configurations_.size(), configuration.title.c_str());
    std::fflush(stdout);
    const size_t index = figures_.size();
    const suite::SuiteWatch watch{
        .interrupted = [this] { return interrupt_.received(); },
        .on_progress = [this](double fraction, const std::string& what) { bar_.show(fraction, what); },
        .on_spoken =
            [&](const suite::Spoken& spoken) { folder_->add_request(suite::json_of(spoken, index)); }};
    try {
      figures_.push_back(suite::speak(configuration, plan_, watch));
    } catch (const Error& error) {
      // Asked for, it must exist; otherwise the suite is what there is.
      if (error.code() != ErrorCode::unsupported || !options_.configurations.empty()) throw;
      bar_.clear();
      std::printf("  left out: %s\n", error.what());
      return;
    }
    bar_.clear();
    if (index == 0) std::printf("%s", model_line(figures_.back()).c_str());
    std::printf("%s", figures_.back().lines().c_str());
    std::fflush(stdout);
    write_summary();
  }

  static std::string model_line(const suite::ConfigurationFigures& f) {
    return concat("  ", f.model, " on ", f.device, "\n");
  }

  ordered_json configurations_json() const {
    ordered_json all = ordered_json::array();
    for (const suite::ConfigurationFigures& each : figures_) all.push_back(each.json());
    return all;
  }

  void write_summary() {
    const ordered_json all = configurations_json();
    const std::vector<ordered_json> rows(all.begin(), all.end());
    folder_->write_summary({{"configurations", all}}, runs::csv_of(rows));
  }

  void write_results() const {
    draw_report(folder_->path());
    if (options_.output.empty() && options_.json.empty()) return;
    const runs::StoredRun run = runs::read_run(folder_->path());
    if (!options_.output.empty()) runs::write_report(options_.output, {&run, 1});
    if (options_.json.empty()) return;
    std::ofstream file(options_.json, std::ios::trunc);
    file << ordered_json{{"schema", "shoal-bench-results-1"}, {"run", run.run}, {"summary", run.summary}}
                .dump(1, ' ', false, ordered_json::error_handler_t::replace)
         << '\n';
    file.close();
    if (!file) fail(ErrorCode::io, options_.json, ": cannot be written");
  }

  const SuiteOptions& options_;
  const EngineConfig config_;
  const suite::SuitePlan plan_;
  const std::vector<suite::Configuration> configurations_;
  ProgressBar bar_;
  const InterruptGuard interrupt_;
  std::string config_device_;
  std::optional<runs::RunFolder> folder_;
  std::vector<suite::ConfigurationFigures> figures_;
};

}  // namespace

void run_suite(const SuiteOptions& options) { SuiteRun(options).run(); }

}  // namespace shoal::cli
