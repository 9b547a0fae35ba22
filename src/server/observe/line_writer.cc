#include "server/observe/line_writer.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <thread>
#include <unistd.h>

namespace shoal::server {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStalled{1000}, kLongest{5000};
constexpr milliseconds kLook{50};  // for close_soon()

}  // namespace

LineWriter::LineWriter(int fd) : fd_(fd) {
  struct stat status{};
  if (fstat(fd, &status) != 0) return;
  is_pipe_ = S_ISFIFO(status.st_mode);
  is_socket_ = S_ISSOCK(status.st_mode);
}

bool LineWriter::write(std::string_view line) {
  auto since = Clock::now();
  while (!line.empty()) {
    if (!wait_for_room(since)) return false;
    // No more than a pipe that has room takes without waiting.
    const int64_t done = write_some(line.substr(0, PIPE_BUF));
    if (done > 0) {
      line.remove_prefix(static_cast<size_t>(done));
      since = Clock::now();
    } else if (errno == EAGAIN) {
      std::this_thread::sleep_for(milliseconds(1));  // somebody else took the room
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

void LineWriter::close_soon() {
  closing_since_ = Clock::now();
  closing_ = true;
}

bool LineWriter::wait_for_room(Clock::time_point since) {
  pollfd look{.fd = fd_, .events = POLLOUT, .revents = 0};
  while (true) {
    if (!gave_up_ && !is_patient(since)) gave_up_ = true;
    const int ready = poll(&look, 1, gave_up_ ? 0 : static_cast<int>(kLook.count()));
    if (ready > 0) return true;
    if (gave_up_ || (ready < 0 && errno != EINTR)) return false;
  }
}

bool LineWriter::is_patient(Clock::time_point since) const {
  if (!closing_) return true;
  const auto now = Clock::now();
  return now - std::max(since, closing_since_) < kStalled && now - closing_since_ < kLongest;
}

int64_t LineWriter::write_some(std::string_view bytes) const {
  if (is_socket_) return send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (is_pipe_) {
    // Another process that writes to the same pipe may have taken the room since poll().
    const iovec piece{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
    const ssize_t done = pwritev2(fd_, &piece, 1, -1, RWF_NOWAIT);
    if (done >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)) return done;
  }
  return ::write(fd_, bytes.data(), bytes.size());
}

}  // namespace shoal::server
