// A shell in a terminal of its own: what a person sees.
#pragma once

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace shoal {

struct Screen {
  int exit_code = -1;  // -1: ended by a signal, or killed after a minute
  std::string text;    // with \n for the terminal's line ends
};

// Runs `commands` in `folder` with a terminal as standard input, output and error.
inline Screen run_in_terminal(const std::string& commands, const std::string& folder) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child < 0) return {};
  if (child == 0) {
    if (chdir(folder.c_str()) != 0) _exit(98);
    execl("/bin/sh", "sh", "-c", commands.c_str(), nullptr);
    _exit(99);
  }
  constexpr int kPatience_ms = 60'000;
  Screen screen;
  char block[4096];
  while (true) {
    pollfd waiting{terminal, POLLIN, 0};
    if (poll(&waiting, 1, kPatience_ms) <= 0) {
      kill(-child, SIGKILL);
      break;
    }
    const ssize_t got = read(terminal, block, sizeof block);
    if (got <= 0) break;  // an error once the last process has gone
    for (ssize_t i = 0; i < got; ++i)
      if (block[i] != '\r' || (i + 1 < got && block[i + 1] != '\n')) screen.text += block[i];
  }
  int status = -1;
  waitpid(child, &status, 0);
  close(terminal);
  if (WIFEXITED(status)) screen.exit_code = WEXITSTATUS(status);
  return screen;
}

}  // namespace shoal
