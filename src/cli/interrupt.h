// Ctrl-C and SIGTERM as a question that long work asks.
#pragma once

namespace shoal::cli {

// While it lives, SIGINT and SIGTERM are remembered instead of killing the process, so that the work can stop
// where nothing is left half done. A second signal kills as usual. One at a time, on the main thread.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool received() const;
};

// Exit code of a run that was interrupted: 128 + SIGINT, as shells expect.
constexpr int kInterruptedExitCode = 130;

}  // namespace shoal::cli
