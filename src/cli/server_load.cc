#include "cli/server_load.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "bench/load/generator.h"
#include "bench/load/kept_sound.h"
#include "bench/load/level_figures.h"
#include "bench/load/rate_sweep.h"
#include "bench/load/summary.h"
#include "bench/measure/promises.h"
#include "bench/runs/run_folder.h"
#include "cli/bench_report.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/server_load_json.h"
#include "cli/server_load_plan.h"

namespace shoal::cli {
namespace {

using nlohmann::ordered_json;

constexpr int kServedOpenLoopWarmUp = 4;
constexpr const char* kSweepObjectives = "ttfa_ms=1000,underruns=0";

std::string title_of(const load::LevelPlan& plan) {
  return plan.open_loop() ? concat(plan.rate_per_s, " requests/s") : concat(plan.users, " at a time");
}

class ServerLoad {
 public:
  explicit ServerLoad(const ServerLoadOptions& o)
      : options_(o),
        slo_(o.slo.empty() && o.sweep ? kSweepObjectives : o.slo),
        objectives_(load::parse_objectives(slo_)),
        plans_(plans_of(o)),
        generator_options_(generator_options(o)),
        folder_(o.output, run_json(o, slo_, generator_options_, plans_)),
        bar_(wants_progress(false)),
        sweep_(plans_.front().rate_per_s) {}

  void run() {
    try {
      go_through();
    } catch (const Error& error) {
      bar_.clear();
      folder_.end(error.code() == ErrorCode::cancelled ? "interrupted" : "failed", error.message());
      draw_report(folder_.path());
      throw;
    }
    if (options_.check)
      check();
    else
      draw_report(folder_.path());
  }
  // Of a run that has ended. Throws Error(unavailable) if a promise is broken.
  void check() {
    const std::vector<bench::Promise> promises = load::promises_of(figures_);
    load::write_levels(folder_, figures_, promises);
    draw_report(folder_.path());
    std::printf("\n%s", bench::promise_table(promises).c_str());
    const auto broken = std::ranges::count_if(promises, [](const bench::Promise& p) { return !p.kept(); });
    if (broken > 0) fail(ErrorCode::unavailable, broken, " of ", promises.size(), " promises are broken");
  }

  const std::vector<load::LevelFigures>& figures() const { return figures_; }

 private:
  void go_through() {
    load::Generator generator(generator_options_);
    try_out(generator);
    if (options_.sweep)
      sweep(generator);
    else
      for (load::LevelPlan& plan : plans_) measure(generator, plan);
    bar_.clear();
    std::fputs(load::table_of(figures_).c_str(), stdout);
    std::printf("\naudible: a sample of %.0f dB or more; the run: %s\n", options_.silence_db,
                folder_.path().c_str());
    if (interrupt_.received()) fail(ErrorCode::cancelled, "interrupted");
    if (options_.sweep) report_capacity();
    const bool any =
        std::any_of(figures_.begin(), figures_.end(), [](const auto& f) { return f.completed > 0; });
    if (!any) fail(ErrorCode::unavailable, url(), ": no request of the run was answered with sound");
    folder_.end("completed", "");
  }

  void sweep(load::Generator& generator) {
    load::LevelPlan plan = plans_.front();
    while (const auto rate_per_s = sweep_.next()) {
      plan.rate_per_s = *rate_per_s;
      measure(generator, plan);
      if (interrupt_.received()) break;
      sweep_.add(figures_.back().good_share() >= load::kKeptShare);
    }
  }

  void report_capacity() {
    const double share = 100 * load::kKeptShare;
    folder_.add_to_summary("sweep", {{"capacity_per_s", sweep_.capacity_per_s()},
                                     {"has_limit", sweep_.has_limit()},
                                     {"kept_share", load::kKeptShare}});
    load::write_levels(folder_, figures_);
    if (sweep_.capacity_per_s() == 0)
      std::printf("no rate that was tried lets %.0f %% of the requests keep %s\n", share, slo_.c_str());
    else
      std::printf("up to %g requests/s%s, %.0f %% of the requests or more keep %s\n", sweep_.capacity_per_s(),
                  sweep_.has_limit() ? "" : " (no higher rate was tried)", share, slo_.c_str());
  }

  // What is wrong with the server, in one sentence instead of a thousand failures.
  void try_out(load::Generator& generator) {
    bar_.show(0, "a trial request");
    load::RequestRecord trial;
    load::LevelPlan plan{.requests = 1};
    run_level(generator, plan, "a trial request",
              [&](load::RequestRecord&& record) { trial = std::move(record); });
    if (interrupt_.received()) fail(ErrorCode::cancelled, "interrupted");
    folder_.add_to_run("trial", load::json_of(trial, load::figures_of(trial), !trial.failure, trial.due_us));
    if (trial.failure) fail(ErrorCode::unavailable, url(), ": ", trial.failure->detail);
    bar_.clear();
    const load::RequestFigures f = load::figures_of(trial);
    std::printf("%s: %s, %s of %d Hz%s; trial: first sound after %.0f ms, %.1f s of sound in %.0f ms\n\n",
                url().c_str(), std::string(load::name_of(generator_options_.target.api)).c_str(),
                options_.format.c_str(), trial.format.rate_hz,
                trial.format.channels > 1 ? " with several channels" : "", f.first_sound_ms.value_or(0),
                f.sound_s, f.latency_ms);
    std::fflush(stdout);
  }

  void warm_up(load::Generator& generator, const load::LevelPlan& level) {
    const int usual = level.open_loop() ? kServedOpenLoopWarmUp : level.users;
    const int count = options_.warm_up.value_or(usual);
    if (count == 0) return;
    load::LevelPlan plan{.users = std::min(count, usual), .requests = count};
    run_level(generator, plan, "warming up", [](load::RequestRecord&&) {});
  }

  void measure(load::Generator& generator, load::LevelPlan& plan) {
    if (!interrupt_.received()) warm_up(generator, plan);
    if (interrupt_.received()) return;
    if (origin_us_ == 0) origin_us_ = now_us();
    const size_t level = figures_.size();
    load::LevelTally tally(objectives_);
    const auto on_end = [&](load::RequestRecord&& record) {
      const load::RequestFigures figures = load::figures_of(record);
      const bool good = tally.add(record, figures);
      ordered_json line = {{"level", level}};
      line.update(load::json_of(record, figures, good, origin_us_));
      if (options_.keep_audio) line.update(keep(level, record));
      folder_.add_request(line);
    };
    const load::LevelRun run = run_level(generator, plan, title_of(plan), on_end);
    figures_.push_back(tally.figures(plan, run));
    load::write_levels(folder_, figures_);  // a run that is killed later keeps this level
  }

  // The sound as a file, and what should be in it.
  ordered_json keep(size_t level, const load::RequestRecord& record) {
    ordered_json kept = {{"texts", load::texts_of(generator_options_.question, record.index)},
                         {"audio", nullptr}};
    if (!record.samples.empty()) kept["audio"] = load::keep_sound(folder_.path(), level, record);
    return kept;
  }

  load::LevelRun run_level(load::Generator& generator, load::LevelPlan& plan, const std::string& title,
                           const std::function<void(load::RequestRecord&&)>& on_end) {
    plan.first_request = next_request_;
    const load::LevelWatch watch{
        .interrupted = [this] { return interrupt_.received(); },
        .on_progress =
            [&](const load::LevelProgress& p) {
              const double by_time = plan.duration_s > 0 ? p.elapsed_s / plan.duration_s : 0;
              const double by_count =
                  plan.requests > 0 ? static_cast<double>(p.ended) / static_cast<double>(plan.requests) : 0;
              bar_.show(std::min(1.0, std::max(by_time, by_count)),
                        concat(title, ": ", p.ended, " of ", p.begun, " ended"));
            }};
    const auto counted = [&](load::RequestRecord&& record) {
      ++next_request_;
      on_end(std::move(record));
    };
    return generator.run(plan, counted, watch);
  }

  std::string url() const { return generator_options_.target.url.text(); }

  const ServerLoadOptions& options_;
  const std::string slo_;
  const std::vector<load::Objective> objectives_;
  std::vector<load::LevelPlan> plans_;
  const load::GeneratorOptions generator_options_;
  runs::RunFolder folder_;
  ProgressBar bar_;
  const InterruptGuard interrupt_;
  load::RateSweep sweep_;
  std::vector<load::LevelFigures> figures_;
  uint64_t next_request_ = 0;
  int64_t origin_us_ = 0;
};

}  // namespace

void run_server_load(const ServerLoadOptions& options) { ServerLoad(options).run(); }

void compare_servers(const ServerLoadOptions& options) {
  if (options.check)
    fail(ErrorCode::invalid_argument, "check: judges one server, and compare runs two; ask each by itself");
  const std::string folder = runs::unused_folder(options.output);
  std::vector<std::vector<load::LevelFigures>> figures;
  for (const char* name : {"single", "multi"}) {
    ServerLoadOptions one = options;
    one.url = figures.empty() ? options.single_url : options.multi_url;
    one.output = folder + "/" + name;
    std::printf("%s%s\n", figures.empty() ? "" : "\n", name);
    ServerLoad load(one);
    load.run();
    figures.push_back(load.figures());
  }
  std::printf("\n%s", load::comparison_table(figures[0], figures[1]).c_str());
}

}  // namespace shoal::cli
