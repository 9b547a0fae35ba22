#include "cli/interrupt.h"

#include <atomic>
#include <climits>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace shoal::cli {
namespace {

// What handlers touch.
std::atomic<bool> interrupted{false}, hung_up{false}, has_unfinished{false};
char unfinished[PATH_MAX];
static_assert(std::atomic<bool>::is_always_lock_free);

void interrupt(int signal) {
  if (!interrupted.exchange(true)) return;
  if (has_unfinished) unlink(unfinished);
  std::signal(signal, SIG_DFL);
  raise(signal);  // comes when this handler returns
}

void hang_up(int) { hung_up = true; }

bool is_ignored(int signal) {
  struct sigaction present{};
  return sigaction(signal, nullptr, &present) == 0 && present.sa_handler == SIG_IGN;
}

}  // namespace

InterruptGuard::InterruptGuard(Hangup hangup) : hears_hangup_(!is_ignored(SIGHUP)) {
  interrupted = hung_up = has_unfinished = false;
  std::signal(SIGINT, interrupt);
  std::signal(SIGTERM, interrupt);
  if (hears_hangup_) std::signal(SIGHUP, hangup == Hangup::interrupts ? interrupt : hang_up);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (hears_hangup_) std::signal(SIGHUP, SIG_DFL);
}

bool InterruptGuard::received() const { return interrupted; }
bool InterruptGuard::take_hangup() const { return hung_up.exchange(false); }

void InterruptGuard::remove_if_killed(const std::string& path) const {
  has_unfinished = false;
  if (path.empty() || path.size() >= sizeof unfinished) return;
  std::memcpy(unfinished, path.c_str(), path.size() + 1);
  has_unfinished = true;
}

bool has_terminal() {
  const int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (terminal >= 0) close(terminal);
  return terminal >= 0;
}

}  // namespace shoal::cli
