#include "server/wyoming/door.h"

#include <arpa/inet.h>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>

#include "base/error.h"
#include "server/http/listen_address.h"

namespace shoal::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int kBacklog = 128;
// Two seconds of sound may wait in the kernel, not minutes.
constexpr int kSoundBufferBytes = 200 << 10;

// Whether a program listens at a UNIX socket.
bool is_in_use(const std::string& path) {
  asio::io_context context;
  asio::local::stream_protocol::socket socket(context);
  error_code error;
  socket.connect(path, error);
  return error != asio::error::connection_refused && error != asio::error::not_found;
}

}  // namespace

WyomingDoor::WyomingDoor(Executor executor, const WyomingAddress& address) : acceptor_(executor) {
  if (!address.path.empty()) {
    open_path(address.path);
    return;
  }
  name_ = "tcp://" + address.listen;
  open(parse_listen_address(address.listen));
  asio::ip::tcp::endpoint bound;
  const AnyStream::endpoint where = acceptor_.local_endpoint();
  std::memcpy(bound.data(), where.data(), where.size());
  name_ = concat("tcp://", address.listen.substr(0, address.listen.rfind(':')), ":", bound.port());
}

void WyomingDoor::refuse(const std::string& why) const { fail(ErrorCode::io, "wyoming: ", name_, ": ", why); }

void WyomingDoor::open(const AnyStream::endpoint& endpoint) {
  error_code error;
  acceptor_.open(endpoint.protocol(), error);
  if (!error) {
    (void)fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
    const int on = 1;
    (void)setsockopt(acceptor_.native_handle(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    acceptor_.bind(endpoint, error);
  }
  if (!error) acceptor_.listen(kBacklog, error);
  if (error) refuse(error.message());
}

void WyomingDoor::open_path(const std::string& path) {
  name_ = "unix://" + path;
  struct stat file{};
  if (lstat(path.c_str(), &file) == 0) {
    if (!S_ISSOCK(file.st_mode)) refuse("a file that is no socket has this name");
    if (is_in_use(path)) refuse("another program listens there");
    if (unlink(path.c_str()) != 0) refuse(std::generic_category().message(errno));
  }
  open(asio::local::stream_protocol::endpoint(path));
  path_ = path;
  if (lstat(path.c_str(), &file) == 0) {
    device_ = file.st_dev;
    inode_ = file.st_ino;
  }
}

void WyomingDoor::close() {
  if (!acceptor_.is_open()) return;
  error_code ignored;
  acceptor_.close(ignored);
  struct stat file{};
  const bool ours =
      !path_.empty() && lstat(path_.c_str(), &file) == 0 && file.st_dev == device_ && file.st_ino == inode_;
  if (ours) (void)unlink(path_.c_str());
}

std::string prepare_accepted(WyomingStream& socket) {
  const int descriptor = socket.native_handle();
  (void)fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  (void)setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &kSoundBufferBytes, sizeof kSoundBufferBytes);
  error_code error;
  const AnyStream::endpoint peer = socket.remote_endpoint(error);
  const int family = error ? AF_UNIX : peer.protocol().family();
  if (family == AF_UNIX) return "unix";
  const int on = 1;
  (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  asio::ip::tcp::endpoint address;
  std::memcpy(address.data(), peer.data(), std::min(peer.size(), address.capacity()));
  return address.address().to_string();
}

}  // namespace shoal::server
