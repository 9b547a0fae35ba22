#include "fleet/watch.h"

#include <algorithm>

namespace shoal::fleet {

const char* name_of(WorkerState state) {
  switch (state) {
    case WorkerState::waiting:
      return "waiting";
    case WorkerState::starting:
      return "starting";
    case WorkerState::ready:
      return "ready";
    case WorkerState::unready:
      return "unready";
    case WorkerState::draining:
      return "draining";
    case WorkerState::ending:
      return "ending";
    case WorkerState::given_up:
      return "given up";
    case WorkerState::unreachable:
      return "unreachable";
  }
  return "";
}

bool WorkerWatch::should_check(int64_t now_us) const {
  constexpr int kOftener = 5;  // the next worker waits for this one
  const bool is_watched = runs() && !is_leaving();
  return is_watched &&
         now_us - checked_us_ >= rules_.check_us / (state_ == WorkerState::ready ? 1 : kOftener);
}

bool WorkerWatch::hangs(int64_t now_us) const {
  if (!runs() || is_leaving()) return false;
  if (silent_checks_ < rules_.most_silent_checks) return false;
  // Before it listens, a process refuses connections; then it loads the model, which on a busy machine may
  // leave no time for answers.
  return was_ready_ || now_us - answered_us_ > rules_.start_silence_us;
}

void WorkerWatch::started(int64_t now_us) {
  state_ = WorkerState::starting;
  answered_us_ = checked_us_ = now_us;
  silent_checks_ = 0;
  was_ready_ = is_wanted_end_ = false;
  if (has_run_) ++restarts_;
  has_run_ = true;
}

void WorkerWatch::checked(CheckResult result, int64_t now_us) {
  if (!runs() || is_leaving()) return;  // the answer of a process that is no more
  if (result == CheckResult::silent) {
    ++silent_checks_;
    return;
  }
  silent_checks_ = 0;
  answered_us_ = now_us;
  if (result == CheckResult::unready) {
    if (state_ == WorkerState::ready) state_ = WorkerState::unready;
    return;
  }
  if (state_ != WorkerState::ready) ready_since_us_ = now_us;
  state_ = WorkerState::ready;
  was_ready_ = true;
  if (now_us - ready_since_us_ >= rules_.steady_us) failures_ = 0;
}

void WorkerWatch::asked_to_end(int64_t until_us) {
  state_ = WorkerState::draining;
  drained_until_us_ = until_us;
  is_wanted_end_ = true;
}

void WorkerWatch::forgiven(int64_t now_us) {
  if (runs()) return;
  state_ = WorkerState::waiting;
  failures_ = 0;
  next_start_us_ = now_us;
}

void WorkerWatch::ended(int64_t now_us) {
  if (is_wanted_end_) {
    state_ = WorkerState::waiting;
    next_start_us_ = now_us;
    return;
  }
  ++failures_;
  if (failures_ >= rules_.most_failures) {
    state_ = WorkerState::given_up;
    return;
  }
  pause_us_ = rules_.first_pause_us;
  for (int i = 1; i < failures_ && pause_us_ < rules_.longest_pause_us; ++i) pause_us_ *= 2;
  pause_us_ = std::min(pause_us_, rules_.longest_pause_us);
  next_start_us_ = now_us + pause_us_;
  state_ = WorkerState::waiting;
}

}  // namespace shoal::fleet
