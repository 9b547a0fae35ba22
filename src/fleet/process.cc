#include "fleet/process.h"

#include <csignal>
#include <poll.h>
#include <unistd.h>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"

namespace shoal::fleet {

std::string_view without_program(std::string_view error) {
  constexpr std::string_view kPrefix = "shoal: ";
  return error.substr(error.starts_with(kPrefix) ? kPrefix.size() : 0);
}

Process::Process(const ProcessOptions& options, WorkerPlan plan,
                 std::function<Command(const WorkerPlan&)> command, std::string ready_socket)
    : options_(options),
      plan_(std::move(plan)),
      command_(std::move(command)),
      target_{.port = plan_.port, .socket = std::move(ready_socket)},
      watch_(options.rules) {}

void Process::start() {
  child_ = std::make_unique<Child>(command_(plan_));
  lines_ = {};
  started_us_ = now_us();
  watch_.started(started_us_);
  log(LogLevel::info, plan_.name, ": started, pid ", child_->pid(), ", port ", plan_.port);
}

void Process::send(int signal) {
  if (child_) child_->send(signal);
}

void Process::restart() {
  if (!runs()) return watch_.forgiven(now_us());
  log(LogLevel::info, plan_.name, ": ends, and starts again");
  probe_.end();
  send(SIGTERM);
  watch_.asked_to_end(now_us() + options_.grace_us);
}

void Process::watch_for(std::vector<pollfd>& events) const {
  if (child_ && reads_) events.push_back({.fd = child_->output(), .events = POLLIN});
  if (probe_.socket() >= 0) events.push_back({.fd = probe_.socket(), .events = probe_.events()});
}

std::optional<Ended> Process::look() {
  if (!child_) return std::nullopt;
  const std::optional<Ended> ended = child_->poll();
  read_output();
  if (!ended) return std::nullopt;
  for (const std::string& line : lines_.finish()) options_.print(named_line(plan_.name, line));
  child_.reset();
  probe_.end();
  reads_ = true;
  return ended;
}

void Process::note_end(const Ended& ended) {
  constexpr double kSecond_us = 1e6;
  constexpr size_t kLongestReason = 300;
  const int failures = watch_.failures();
  watch_.ended(now_us());
  if (watch_.failures() == failures) return log(LogLevel::info, plan_.name, ": ended with ", to_words(ended));
  last_error_ = reason_of_kill_.empty() ? to_words(ended) : std::exchange(reason_of_kill_, {});
  if (ended.exit_code > 0) last_error_ += ": " + printable(without_program(lines_.last()), kLongestReason);
  if (watch_.state() == WorkerState::given_up)
    log(LogLevel::error, plan_.name, ": ended with ", to_words(ended), ", ", watch_.failures(),
        " times in a row: given up");
  else
    log(LogLevel::warning, plan_.name, ": ended with ", to_words(ended), "; restart ", watch_.failures(),
        " of ", options_.rules.most_failures - 1, " in ", static_cast<double>(watch_.pause_us()) / kSecond_us,
        " s");
}

void Process::check() {
  const int64_t now = now_us();
  if (!probe_.is_under_way() && watch_.should_check(now)) {
    probe_.begin(target_, now + options_.rules.check_timeout_us);
    watch_.check_began(now);
  }
  if (probe_.is_under_way()) take(probe_.go_on(now));
  if (!watch_.hangs(now) && !watch_.is_overdue(now)) return;
  reason_of_kill_ = watch_.hangs(now) ? "gives no answer" : "has not ended in time";
  log(LogLevel::error, plan_.name, ": ", reason_of_kill_, "; it is killed");
  send(SIGKILL);
  watch_.killed();
}

void Process::read_output() {
  char bytes[16 * 1024];
  constexpr int kMostReads = 64;  // a worker that writes without end must not keep us from the others
  for (int i = 0; i < kMostReads && reads_; ++i) {
    const ssize_t count = read(child_->output(), bytes, sizeof bytes);
    if (count == 0) reads_ = false;
    if (count <= 0) return;
    for (const std::string& line : lines_.add({bytes, static_cast<size_t>(count)}))
      options_.print(named_line(plan_.name, line));
  }
}

void Process::take(std::optional<CheckResult> result) {
  if (!result) return;
  probe_.end();
  const WorkerState before = watch_.state();
  watch_.checked(*result, now_us());
  if (watch_.state() != before) log(LogLevel::info, plan_.name, ": ", name_of(watch_.state()));
}

}  // namespace shoal::fleet
