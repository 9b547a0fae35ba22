#include "server/http/disconnect_watcher.h"

#include <algorithm>
#include <boost/asio/socket_base.hpp>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

namespace shoal::server {
namespace {

constexpr std::chrono::milliseconds kFirstPause{5}, kLongestPause{100};

enum class Sight { nothing, bytes, end };

Sight peek(int descriptor) {
  char byte = 0;
  const ssize_t got = recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? Sight::nothing : Sight::end;
  if (got == 0) return Sight::end;
  // The end may come after bytes that are not ours to read.
  pollfd ended{.fd = descriptor, .events = POLLRDHUP, .revents = 0};
  if (poll(&ended, 1, 0) > 0 && (ended.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) return Sight::end;
  return Sight::bytes;
}

}  // namespace

DisconnectWatcher::DisconnectWatcher(Socket& socket, std::function<void()> gone)
    : socket_(socket), gone_(std::move(gone)), timer_(socket.get_executor()), pause_(kFirstPause) {}

void DisconnectWatcher::stop() {
  if (!gone_) return;
  gone_ = nullptr;
  boost::system::error_code ignored;
  socket_.cancel(ignored);
  timer_.cancel();
}

void DisconnectWatcher::wait() {
  socket_.async_wait(boost::asio::socket_base::wait_read,
                     [self = shared_from_this()](boost::system::error_code error) {
                       // Cancelled: another wait of the socket has ended (a write that took too long); its
                       // owner ends the exchange.
                       if (!error && self->gone_) self->look();
                     });
}

void DisconnectWatcher::look() {
  switch (peek(socket_.native_handle())) {
    case Sight::nothing:
      return wait();
    case Sight::bytes:
      return look_again();
    case Sight::end:
      std::exchange(gone_, nullptr)();
  }
}

void DisconnectWatcher::look_again() {
  timer_.expires_after(pause_);
  pause_ = std::min(2 * pause_, kLongestPause);
  timer_.async_wait([self = shared_from_this()](boost::system::error_code error) {
    if (!error && self->gone_) self->look();
  });
}

}  // namespace shoal::server
