#include "text/phonemes/espeak_process.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

extern char** environ;

namespace shoal::phonemes {
namespace {

using Outcome = EspeakProcess::Outcome;

// Runs in the child between fork and exec: its own process group (Ctrl-C is for the server, which finishes
// its requests), default signals, no inherited descriptor but the socket.
class SpawnPlan {
 public:
  explicit SpawnPlan(int child_socket) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, child_socket, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, child_socket, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", 1 /* O_WRONLY */, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);

    posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  int start(const std::string& program, pid_t& pid) const {
    std::string name = program;  // argv is not const
    char* const arguments[] = {name.data(), nullptr};
    return posix_spawn(&pid, program.c_str(), &actions_, &attributes_, arguments, environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Waits until the socket is ready for `events`.
Outcome wait_for(int socket, short events, int64_t deadline_us) {
  while (true) {
    const int64_t left_us = deadline_us - now_us();
    if (left_us <= 0) return Outcome::timed_out;
    pollfd entry{socket, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(left_us / 1000 + 1));
    if (ready > 0) return Outcome::answered;
    if (ready < 0 && errno != EINTR) return Outcome::died;
  }
}

std::string describe_end(int status) {
  if (WIFEXITED(status)) return concat("exit code ", WEXITSTATUS(status));
  if (WIFSIGNALED(status)) return concat("signal ", WTERMSIG(status));
  return "an unknown end";
}

}  // namespace

EspeakProcess::EspeakProcess(const std::string& program, int timeout_ms) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    fail(ErrorCode::resource_exhausted, "phonemizer: no socket for it (", std::strerror(errno), ")");
  socket_ = ends[0];
  const int failed = SpawnPlan(ends[1]).start(program, pid_);
  ::close(ends[1]);
  if (failed != 0) {
    ::close(socket_);
    fail(ErrorCode::unavailable, "phonemizer: ", program, " cannot be started (", std::strerror(failed),
         "); install it beside the server, or send phonemes instead of text");
  }

  Message hello;
  const Outcome outcome = receive_message(hello, now_us() + int64_t{timeout_ms} * 1000);
  if (outcome == Outcome::answered && hello.kind == MessageKind::ok && hello.strings.size() == 1) {
    version_ = hello.strings[0];
    return;
  }
  if (outcome == Outcome::timed_out) patience_ms_ = 0;
  const std::string how = end();
  if (outcome == Outcome::answered && !hello.strings.empty())
    fail(ErrorCode::unavailable, "phonemizer: ", hello.strings[0]);
  if (outcome == Outcome::timed_out)
    fail(ErrorCode::unavailable, "phonemizer: ", program, " was not ready within ", timeout_ms, " ms");
  fail(ErrorCode::unavailable, "phonemizer: ", program, " ended at once (", how,
       "); install libespeak-ng1 and espeak-ng-data, or send phonemes instead of text");
}

EspeakProcess::~EspeakProcess() { end(); }

Outcome EspeakProcess::exchange(const Message& request, Message& answer, int timeout_ms) {
  const int64_t deadline_us = now_us() + int64_t{timeout_ms} * 1000;
  const std::string bytes = pack(request);
  CHECK(bytes.size() <= kMaxMessageBytes, "a request of ", bytes.size(), " bytes");
  Outcome outcome = send(bytes, deadline_us);
  if (outcome == Outcome::answered) outcome = receive_message(answer, deadline_us);
  if (outcome == Outcome::timed_out) patience_ms_ = 0;
  return outcome;
}

Outcome EspeakProcess::send(std::string_view bytes, int64_t deadline_us) {
  while (!bytes.empty()) {
    const ssize_t put = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put >= 0) {
      bytes.remove_prefix(static_cast<size_t>(put));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (const Outcome ready = wait_for(socket_, POLLOUT, deadline_us); ready != Outcome::answered)
        return ready;
    } else if (errno != EINTR) {
      return Outcome::died;
    }
  }
  return Outcome::answered;
}

Outcome EspeakProcess::receive(std::string& bytes, size_t count, int64_t deadline_us) {
  bytes.resize(count);
  for (size_t done = 0; done < count;) {
    if (const Outcome ready = wait_for(socket_, POLLIN, deadline_us); ready != Outcome::answered)
      return ready;
    const ssize_t got = ::recv(socket_, bytes.data() + done, count - done, MSG_DONTWAIT);
    if (got == 0) return Outcome::died;
    if (got > 0) {
      done += static_cast<size_t>(got);
    } else if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) {
      return Outcome::died;
    }
  }
  return Outcome::answered;
}

// Bytes that are no message count as death: the sender is not our helper any more.
Outcome EspeakProcess::receive_message(Message& message, int64_t deadline_us) {
  std::string bytes;
  if (const Outcome got = receive(bytes, kLengthBytes, deadline_us); got != Outcome::answered) return got;
  const uint32_t length = read_length(bytes);
  if (length > kMaxMessageBytes) return Outcome::died;
  if (const Outcome got = receive(bytes, length, deadline_us); got != Outcome::answered) return got;
  std::optional<Message> read = unpack(bytes);
  if (!read) return Outcome::died;
  message = std::move(*read);
  return Outcome::answered;
}

std::string EspeakProcess::end() {
  if (socket_ >= 0) ::close(socket_);  // the end of its input
  socket_ = -1;
  if (pid_ <= 0) return "it was gone";
  int status = 0;
  for (int waited_ms = 0; waited_ms < patience_ms_; ++waited_ms) {
    const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
    if (ended == 0) {
      ::usleep(1000);
      continue;
    }
    const bool ours = ended == pid_;  // else somebody reaps for us
    pid_ = -1;
    return ours ? describe_end(status) : "it was gone";
  }
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return describe_end(status);
}

}  // namespace shoal::phonemes
