#include "cli/playback.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

namespace shoal::cli {
namespace {

constexpr int kLook_ms = 50;

[[noreturn]] void fail_interrupted() { fail(ErrorCode::cancelled, "the speech was cancelled"); }

std::string temporary_file(int& descriptor) {
  const char* const folder = std::getenv("TMPDIR");
  std::string path = concat(folder && *folder ? folder : "/tmp", "/shoal-XXXXXX.wav");
  descriptor = mkostemps(path.data(), 4, O_CLOEXEC);
  if (descriptor < 0) fail(ErrorCode::io, path, ": cannot be made: ", std::strerror(errno));
  return path;
}

// The player's standard input is `input`; its output goes nowhere, its messages where ours go. Signals that
// this program ignores are the player's again.
int spawn(const std::vector<std::string>& arguments, int input) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (input >= 0)
    posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  else
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t usual;
  sigemptyset(&usual);
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM}) sigaddset(&usual, signal);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = -1;
  const int error = posix_spawnp(&child, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0)
    fail(ErrorCode::io, "player ", arguments.front(), ": cannot be started: ", std::strerror(error));
  return child;
}

}  // namespace

Playback::Playback(const Player& player, int sample_rate_hz, std::function<bool()> is_interrupted)
    : player_(player), sample_rate_hz_(sample_rate_hz), interrupted_(std::move(is_interrupted)) {
  const bool takes_file = player.takes == Player::Takes::file;
  if (takes_file) {
    file_ = temporary_file(pipe_);
  } else {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail(ErrorCode::io, "player: no pipe: ", std::strerror(errno));
    pipe_ = ends[1];
    try {
      child_ = spawn(arguments_of(player, sample_rate_hz), ends[0]);
    } catch (...) {
      close(ends[0]);
      close(ends[1]);
      throw;
    }
    close(ends[0]);
    fcntl(pipe_, F_SETFL, O_NONBLOCK);  // so that an interrupt is seen while the player plays
  }
  const auto format = player.takes == Player::Takes::samples ? audio::Format::pcm_s16le : audio::Format::wav;
  encoder_ = audio::make_encoder(format, {.sample_rate_hz = sample_rate_hz, .rewritable_header = takes_file},
                                 [this](std::span<const std::byte> bytes) { send(bytes); });
}

Playback::~Playback() {
  if (pipe_ >= 0) close(pipe_);
  if (!file_.empty()) unlink(file_.c_str());
  if (child_ <= 0) return;
  kill(child_, SIGTERM);
  waitpid(child_, nullptr, 0);
}

void Playback::write(std::span<const float> mono) { encoder_->write(mono); }

void Playback::send(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (interrupted_()) fail_interrupted();
    const ssize_t sent = ::write(pipe_, bytes.data(), bytes.size());
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      pollfd room{pipe_, POLLOUT, 0};
      poll(&room, 1, kLook_ms);
    } else if (errno == EPIPE) {
      fail_as_player();
    } else if (errno != EINTR) {
      fail(ErrorCode::io, "player ", player_.name, ": ", std::strerror(errno));
    }
  }
}

void Playback::finish() {
  encoder_->finish();
  if (file_.empty()) {
    close(std::exchange(pipe_, -1));
  } else {
    const std::vector<std::byte> header = encoder_->final_header();
    if (pwrite(pipe_, header.data(), header.size(), 0) != static_cast<ssize_t>(header.size()))
      fail(ErrorCode::io, file_, ": ", std::strerror(errno));
    child_ = spawn(arguments_of(player_, sample_rate_hz_, file_), -1);
  }
  wait();
}

void Playback::wait() {
  int status = 0;
  for (;;) {
    const pid_t ended = waitpid(child_, &status, WNOHANG);
    if (ended == child_) break;
    if (interrupted_()) fail_interrupted();
    poll(nullptr, 0, kLook_ms);
  }
  child_ = -1;
  if (interrupted_()) fail_interrupted();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  fail(ErrorCode::io, "player ", player_.name, ": failed; choose another with --player, or give -o FILE");
}

// It has closed its end of the pipe: what it had to say stands on standard error.
void Playback::fail_as_player() {
  if (interrupted_()) fail_interrupted();
  fail(ErrorCode::io, "player ", player_.name,
       ": ended early; choose another with --player, or give -o FILE");
}

}  // namespace shoal::cli
