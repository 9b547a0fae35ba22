#include "fleet/probe.h"

#include <arpa/inet.h>
#include <cerrno>
#include <netinet/in.h>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"

namespace shoal::fleet {
namespace {

constexpr const char* kRequest = "GET /ready HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n";
constexpr size_t kStatusBytes = std::string_view("HTTP/1.1 200").size();

sockaddr_in loopback(int port) {
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(static_cast<uint16_t>(port))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool must_wait() { return errno == EAGAIN || errno == EINPROGRESS || errno == EINTR || errno == ENOTCONN; }

}  // namespace

void Probe::begin(const Target& target, int64_t deadline_us) {
  end();
  under_way_ = true;
  deadline_us_ = deadline_us;
  request_ = concat(kRequest, target.header, "\r\n");
  const bool is_local = !target.socket.empty();
  socket_ = ::socket(is_local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in remote = loopback(target.port);
  inet_pton(AF_INET, target.host.c_str(), &remote.sin_addr);
  sockaddr_un local{.sun_family = AF_UNIX};
  target.socket.copy(local.sun_path, sizeof local.sun_path - 1);
  const auto* address =
      is_local ? reinterpret_cast<const sockaddr*>(&local) : reinterpret_cast<const sockaddr*>(&remote);
  if (socket_ < 0 || connect(socket_, address, is_local ? sizeof local : sizeof remote) == 0) return;
  if (errno == EINPROGRESS) return;
  close(socket_);
  socket_ = -1;
}

void Probe::end() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  under_way_ = sent_ = false;
  head_.clear();
}

short Probe::events() const { return sent_ ? POLLIN : POLLOUT; }

std::optional<CheckResult> Probe::go_on(int64_t now_us) {
  const std::optional<CheckResult> result = step();
  if (!result && now_us >= deadline_us_) return CheckResult::silent;
  return result;
}

std::optional<CheckResult> Probe::step() {
  if (socket_ < 0) return CheckResult::silent;
  if (!sent_) {
    // The request fits any socket's buffer.
    const ssize_t count = send(socket_, request_.data(), request_.size(), MSG_NOSIGNAL);
    if (count < 0 && must_wait()) return std::nullopt;
    if (count != static_cast<ssize_t>(request_.size())) return CheckResult::silent;
    sent_ = true;
  }
  return read_status();
}

std::optional<CheckResult> Probe::read_status() {
  char bytes[kStatusBytes];
  const ssize_t count = recv(socket_, bytes, kStatusBytes - head_.size(), 0);
  if (count < 0 && must_wait()) return std::nullopt;
  if (count <= 0) return CheckResult::silent;
  head_.append(bytes, static_cast<size_t>(count));
  if (head_.size() < kStatusBytes) return std::nullopt;
  if (!head_.starts_with("HTTP/1.")) return CheckResult::silent;
  return head_.ends_with(" 200") ? CheckResult::ready : CheckResult::unready;
}

int error_of_port(int port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;  // connections of an earlier run that are not forgotten yet are no reason
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in address = loopback(port);
  const int error =
      bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  close(listener);
  return error;
}

}  // namespace shoal::fleet
