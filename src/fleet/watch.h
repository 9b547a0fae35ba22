// What to do with one worker and when: decisions alone, without processes, sockets or a clock of their own.
#pragma once

#include <cstdint>

namespace shoal::fleet {

struct WatchRules {
  int64_t first_pause_us =
      500'000;  // before the first restart; each further one in a row waits twice as long,
  int64_t longest_pause_us = 30'000'000;  // but at most so long
  int most_failures = 8;                  // in a row; then it is given up
  int64_t steady_us = 10'000'000;         // ready for so long: the row of failures has ended
  int64_t check_us = 500'000;             // from check to check of a ready worker; of others a fifth of it
  int64_t check_timeout_us = 750'000;     // an answer that has not come by then will not come
  int most_silent_checks = 3;             // in a row without an answer: it hangs, if it was ready
  int64_t start_silence_us = 30'000'000;  // if not, after so long without an answer
};

enum class WorkerState {
  waiting,   // for its turn, or for the end of a pause
  starting,  // runs, and has not been ready
  ready,
  unready,   // was ready, and says that it is not
  draining,  // was asked to end, and finishes what is inside
  ending,    // was killed, and has not ended
  given_up,
  unreachable,  // of another machine, and gives no answer
};
const char* name_of(WorkerState state);

enum class CheckResult { ready, unready, silent };

class WorkerWatch {
 public:
  explicit WorkerWatch(const WatchRules& rules) : rules_(rules) {}

  WorkerState state() const { return state_; }
  bool runs() const { return state_ != WorkerState::waiting && state_ != WorkerState::given_up; }
  int failures() const { return failures_; }  // in a row
  int restarts() const { return restarts_; }  // in all
  int64_t pause_us() const { return pause_us_; }
  bool was_ready() const { return was_ready_; }  // this process of it

  // Questions about a moment. Times are microseconds of one monotonic clock.
  bool should_start(int64_t now_us) const {
    return state_ == WorkerState::waiting && now_us >= next_start_us_;
  }
  bool should_check(int64_t now_us) const;
  bool hangs(int64_t now_us) const;
  bool is_overdue(int64_t now_us) const {
    return state_ == WorkerState::draining && now_us >= drained_until_us_;
  }

  // Events.
  void started(int64_t now_us);
  void check_began(int64_t now_us) { checked_us_ = now_us; }
  void checked(CheckResult result, int64_t now_us);
  // Its end is wanted, and no failure: it starts again at once.
  void asked_to_end(int64_t until_us);
  // It starts at once if it waits or was given up, with no failure behind it.
  void forgiven(int64_t now_us);
  void killed() { state_ = WorkerState::ending; }
  void ended(int64_t now_us);

 private:
  bool is_leaving() const { return state_ == WorkerState::draining || state_ == WorkerState::ending; }

  const WatchRules& rules_;
  WorkerState state_ = WorkerState::waiting;
  int64_t next_start_us_ = 0, checked_us_ = 0, ready_since_us_ = 0, pause_us_ = 0, drained_until_us_ = 0;
  int64_t answered_us_ = 0;  // last; before the first answer: when the process started
  int failures_ = 0, restarts_ = 0, silent_checks_ = 0;
  bool was_ready_ = false, has_run_ = false, is_wanted_end_ = false;
};

}  // namespace shoal::fleet
