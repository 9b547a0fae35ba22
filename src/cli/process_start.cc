#include "cli/process_start.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <initializer_list>
#include <unistd.h>

namespace shoal::cli {

void prepare_process() {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(standard, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one. Open the wrong way round: writes must not vanish as if they were
    // read.
    const int held = open("/dev/null", standard == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (held >= 0 && held != standard) close(held);
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace shoal::cli
