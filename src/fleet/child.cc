#include "fleet/child.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

extern char** environ;

namespace shoal::fleet {
namespace {

constexpr int kCannotExecute = 127;

// What the child needs between fork and exec, where nothing may be allocated.
struct Prepared {
  explicit Prepared(const Command& command) : program(command.program.c_str()) {
    arguments.push_back(const_cast<char*>(program));
    for (const std::string& argument : command.arguments)
      arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    for (char** variable = environ; *variable != nullptr; ++variable)
      if (!is_replaced(*variable, command.environment)) environment.push_back(*variable);
    for (const std::string& variable : command.environment)
      environment.push_back(const_cast<char*>(variable.c_str()));
    environment.push_back(nullptr);
    CPU_ZERO(&cpus);
    for (const int cpu : command.cpus)
      if (cpu < CPU_SETSIZE) CPU_SET(cpu, &cpus);
    has_cpus = CPU_COUNT(&cpus) > 0;
  }

  static bool is_replaced(const char* variable, const std::vector<std::string>& by) {
    return std::ranges::any_of(by, [&](const std::string& other) {
      return std::strncmp(variable, other.c_str(), other.find('=') + 1) == 0;
    });
  }

  const char* program;
  std::vector<char*> arguments, environment;
  cpu_set_t cpus;
  bool has_cpus = false;
};

// Runs in the child. posix_spawn cannot ask for a signal at the parent's death.
[[noreturn]] void become(const Prepared& prepared, int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kCannotExecute);  // it died before we asked
  setsid();
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  if (nothing > STDERR_FILENO) close(nothing);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (prepared.has_cpus) sched_setaffinity(0, sizeof prepared.cpus, &prepared.cpus);
  execve(prepared.program, prepared.arguments.data(), prepared.environment.data());
  _exit(kCannotExecute);
}

}  // namespace

std::string to_words(const Ended& ended) {
  if (ended.exit_code >= 0) return concat("exit code ", ended.exit_code);
  return concat("signal ", ended.signal, " (", strsignal(ended.signal), ")");
}

Child::Child(const Command& command) {
  if (access(command.program.c_str(), X_OK) != 0)
    fail(ErrorCode::io, command.program, ": cannot be executed: ", std::strerror(errno));
  const Prepared prepared(command);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    fail(ErrorCode::io, "no pipe for a child's output: ", std::strerror(errno));
  const pid_t parent = getpid();
  // A signal that the child got before become() would run the parent's handler there and be forgotten.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_ = fork();
  if (pid_ == 0) become(prepared, ends[1], parent);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  close(ends[1]);
  if (pid_ < 0) {
    close(ends[0]);
    fail(ErrorCode::io, command.program, ": no new process: ", std::strerror(error));
  }
  output_ = ends[0];
  fcntl(output_, F_SETFL, O_NONBLOCK);
}

Child::~Child() {
  if (!ended_) {
    kill(pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  }
  close(output_);
}

void Child::send(int signal) {
  // A child that was not waited for keeps its number: no stranger gets the signal.
  if (!poll()) kill(pid_, signal);
}

const std::optional<Ended>& Child::poll() {
  int status = 0;
  if (ended_ || waitpid(pid_, &status, WNOHANG) != pid_) return ended_;
  ended_ = WIFEXITED(status) ? Ended{.exit_code = WEXITSTATUS(status)} : Ended{.signal = WTERMSIG(status)};
  return ended_;
}

}  // namespace shoal::fleet
