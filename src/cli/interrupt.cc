#include "cli/interrupt.h"

#include <csignal>

namespace shoal::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void remember(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted = 0;
  std::signal(SIGINT, remember);
  std::signal(SIGTERM, remember);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool InterruptGuard::received() const { return interrupted != 0; }

}  // namespace shoal::cli
