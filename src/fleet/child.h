// One child process, whose output is read through a pipe.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace shoal::fleet {

struct Command {
  std::string program;
  std::vector<std::string> arguments;    // after the program's name
  std::vector<std::string> environment;  // NAME=value, instead of or besides those of this process
  std::vector<int> cpus;                 // that it may use; empty: as this process
};

// How a process ended.
struct Ended {
  int exit_code = -1;  // -1: a signal ended it
  int signal = 0;
};
std::string to_words(const Ended& ended);  // "exit code 1", "signal 9 (Killed)"

// Starts on construction. The kernel kills the child when the thread that started it ends, however that
// happens. The child has a session of its own: signals of a terminal reach this process alone. Its standard
// input is empty. Destroying a child that runs kills it and waits.
class Child {
 public:
  // Throws Error(io) if the program cannot be started.
  explicit Child(const Command& command);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  int output() const { return output_; }  // of both streams; reading it never waits
  void send(int signal);                  // to the child itself; nothing once it has ended
  // Whether it has ended, without waiting.
  const std::optional<Ended>& poll();

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  std::optional<Ended> ended_;
};

}  // namespace shoal::fleet
