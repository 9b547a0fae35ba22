#include "bench/load/generator.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <exception>
#include <set>
#include <sys/resource.h>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "bench/load/visit.h"
#include "bench/load/wire.h"
#include "bench/measure/draws.h"

namespace shoal::load {
namespace {

using boost::system::error_code;

constexpr double kSlowPace = 0.5;
constexpr int64_t kWake_us = 10'000;
constexpr int kWakesOfACheck = 10;
constexpr std::chrono::milliseconds kPauseAfterFailure{100};
constexpr int64_t kMaxIdle = 10'000;

double cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// A connection is a file; the usual limit of 1,024 is meant for other programs.
void allow_many_files() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

struct Generator::Door {
  GeneratorOptions options;
  asio::io_context io{1};
  Endpoints endpoints;
  std::unique_ptr<asio::ssl::context> tls;
  std::vector<std::unique_ptr<Wire>> idle;

  std::unique_ptr<Wire> take_idle() {
    while (!idle.empty()) {
      std::unique_ptr<Wire> wire = std::move(idle.back());
      idle.pop_back();
      if (!wire->is_stale()) return wire;
    }
    return nullptr;
  }
};

class Generator::Level {
 public:
  Level(Door& door, const LevelPlan& plan, const std::function<void(RequestRecord&&)>& on_end,
        const LevelWatch& watch)
      : door_(door), plan_(plan), on_end_(on_end), watch_(watch) {}

  LevelRun run() {
    run_.began_us = now_us();
    const double cpu_before = cpu_s();
    if (plan_.open_loop())
      start(arrivals());
    else
      for (int user = 0; user < plan_.users; ++user) start(stay());
    start(watch_over());
    door_.io.restart();
    door_.io.run();
    if (problem_) std::rethrow_exception(problem_);
    run_.ended_us = now_us();
    run_.loop_lag_ms = loop_lag_ms_.percentiles();
    run_.cpu_share = (cpu_s() - cpu_before) / (static_cast<double>(run_.ended_us - run_.began_us) / 1e6);
    return run_;
  }

 private:
  void start(Task<> task) {
    ++tasks_;
    asio::co_spawn(door_.io, std::move(task), [this](const std::exception_ptr& problem) {
      --tasks_;
      if (problem && !problem_) problem_ = problem;
      if (problem) stop();
    });
  }

  // Nothing more begins, and what is open ends.
  void stop() {
    stopped_ = true;
    for (Visit* visit : visits_) visit->wire->close();
  }

  int64_t end_us() const { return run_.began_us + static_cast<int64_t>(plan_.duration_s * 1e6); }
  bool used_up() const { return plan_.requests > 0 && begun_ >= plan_.requests; }
  bool is_over(int64_t at_us) const {
    return stopped_ || used_up() || (plan_.duration_s > 0 && at_us >= end_us());
  }

  // A user of a closed loop. One whose request failed waits a moment: a server that is down is not flooded.
  Task<> stay() {
    Timer timer(door_.io.get_executor());
    for (int64_t now = now_us(); !is_over(now); now = now_us()) {
      const bool answered = co_await ask(now);
      if (answered || is_over(now_us())) continue;
      timer.expires_after(kPauseAfterFailure);
      co_await timer.async_wait(kAwait);
    }
  }

  // A user of an open loop.
  Task<> visit_once(int64_t due_us) { co_await ask(due_us); }

  // Those of an open loop.
  Task<> arrivals() {
    Timer timer(door_.io.get_executor());
    double due_s = 0;
    for (uint64_t i = 0;; ++i) {
      due_s += bench::arrival_gap_s(plan_.rate_per_s, plan_.seed, plan_.first_request + i);
      int64_t due_us = run_.began_us + static_cast<int64_t>(due_s * 1e6);
      const bool is_last = is_over(due_us);
      // Rates are over the whole duration, also if its end is quiet.
      if (is_last && used_up()) break;
      if (is_last) due_us = end_us();
      while (now_us() < due_us && !stopped_) {
        timer.expires_at(time_of(std::min(due_us, now_us() + kPatience_us)));
        co_await timer.async_wait(kAwait);
      }
      if (is_last || stopped_) break;
      start(visit_once(due_us));
    }
  }

  // Deadlines, interruption, progress, and how late this thread is.
  Task<> watch_over() {
    Timer timer(door_.io.get_executor());
    for (int wakes = 0; tasks_ > 1; ++wakes) {
      const int64_t wanted_us = now_us() + kWake_us;
      timer.expires_at(time_of(wanted_us));
      co_await timer.async_wait(kAwait);
      loop_lag_ms_.add(static_cast<double>(std::max<int64_t>(0, now_us() - wanted_us)) / 1e3);
      if (wakes % kWakesOfACheck == 0) check();
    }
  }

  void check() {
    const int64_t now = now_us();
    for (Visit* visit : visits_) {
      if (now < visit->deadline_us || visit->timed_out) continue;
      visit->timed_out = true;
      visit->wire->close();
    }
    if (!stopped_ && watch_.interrupted && watch_.interrupted()) {
      run_.interrupted = true;
      stop();
    }
    if (watch_.on_progress)
      watch_.on_progress({begun_, ended_, static_cast<double>(now - run_.began_us) / 1e6});
  }

  // False: it failed.
  Task<bool> ask(int64_t due_us) {
    const uint64_t index = plan_.first_request + static_cast<uint64_t>(begun_++);
    const GeneratorOptions& options = door_.options;
    Visit visit{.turn = {.index = index, .level_begin = plan_.first_request}};
    begin(visit, due_us);
    visits_.insert(&visit);
    run_.most_open = std::max(run_.most_open, std::ssize(visits_));
    const Hearing hearing{.container = options.question.container,
                          .pcm_rate_hz = options.pcm_rate_hz,
                          .silence = options.silence,
                          .leave_after_s = leaves_after_s(plan_, index),
                          .items = options.target.api == Api::batch ? options.question.items : 0,
                          .keep = options.keep_audio};
    bool goes_on = false;
    if (options.target.api == Api::live)
      goes_on = co_await visit_live(visit, place_, hearing);
    else
      goes_on = co_await visit_by_http(visit, place_, hearing);
    visits_.erase(&visit);
    if (goes_on && !visit.record.slow && std::ssize(door_.idle) < kMaxIdle)
      door_.idle.push_back(std::move(visit.wire));
    else
      visit.wire->close();
    if (stopped_ && visit.record.failure && !visit.timed_out) {
      visit.record.outcome = Outcome::interrupted;
      visit.record.failure.reset();
    }
    ++ended_;
    const bool answered = !visit.record.failure;
    on_end_(std::move(visit.record));
    co_return answered;
  }

  void begin(Visit& visit, int64_t due_us) {
    const GeneratorOptions& options = door_.options;
    RequestRecord& record = visit.record;
    record.index = visit.turn.index;
    record.voice = voices_of(options.question, record.index);
    for (const std::string& text : texts_of(options.question, record.index))
      record.characters += characters_of(text);
    record.due_us = due_us;
    record.begun_us = now_us();
    record.slow = reads_slowly(plan_, record.index);
    visit.deadline_us = record.begun_us + static_cast<int64_t>(options.timeout_s * 1e6);
    visit.pace = record.slow ? kSlowPace : plan_.real_time ? 1 : 0;
    if (!record.slow) visit.wire = door_.take_idle();
    visit.is_new = visit.wire == nullptr;
    if (visit.is_new) visit.wire = std::make_unique<Wire>(door_.io.get_executor(), door_.tls.get());
  }

  Door& door_;
  const LevelPlan& plan_;
  const std::function<void(RequestRecord&&)>& on_end_;
  const LevelWatch& watch_;
  LevelRun run_;
  bench::Samples loop_lag_ms_;
  std::set<Visit*> visits_;
  std::exception_ptr problem_;
  int64_t begun_ = 0, ended_ = 0, tasks_ = 0;
  bool stopped_ = false;
  const VisitPlace place_{door_.options, door_.endpoints, stopped_};
};

Generator::Generator(GeneratorOptions options) : door_(std::make_unique<Door>()) {
  allow_many_files();
  const Url& url = options.target.url;
  if (url.tls) door_->tls = make_client_tls(options.authorities);
  asio::ip::tcp::resolver resolver(door_->io);
  error_code error;
  for (const auto& entry : resolver.resolve(url.host, url.port, error))
    door_->endpoints.push_back(entry.endpoint());
  if (door_->endpoints.empty())
    fail(ErrorCode::unavailable, url.text(), ": the host has no address",
         error ? concat(": ", error.message()) : "");
  door_->options = std::move(options);
}

Generator::~Generator() = default;

LevelRun Generator::run(const LevelPlan& plan, const std::function<void(RequestRecord&&)>& on_end,
                        const LevelWatch& watch) {
  plan.validate();
  return Level(*door_, plan, on_end, watch).run();
}

}  // namespace shoal::load
