// Signals that end a program, as questions that long work asks.
#pragma once

#include <string>

namespace shoal::cli {

enum class Hangup {
  interrupts,    // SIGHUP is one more such signal
  is_remembered  // a separate question
};

// While it exists, SIGINT, SIGTERM and SIGHUP are recorded instead of killing the process, so that the work
// can stop cleanly. A second signal kills as usual. SIGHUP stays ignored if it was (nohup). One instance at a
// time, on the main thread.
class InterruptGuard {
 public:
  explicit InterruptGuard(Hangup hangup = Hangup::interrupts);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool received() const;
  // Whether SIGHUP came since the last call; Hangup::is_remembered.
  bool take_hangup() const;

  // A file to remove when a second signal kills; empty: none.
  void remove_if_killed(const std::string& path) const;

 private:
  const bool hears_hangup_;
};

// Whether the process has a controlling terminal that is still there.
bool has_terminal();

// Exit code of a run that was interrupted: 128 + SIGINT, as shells expect.
constexpr int kInterruptedExitCode = 130;

}  // namespace shoal::cli
