#include "server/http/lane.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <new>
#include <sys/socket.h>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "server/http/quiet_thread.h"

namespace shoal::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr auto kAwaitAccept = asio::as_tuple(asio::use_awaitable_t<Executor>());
constexpr std::chrono::milliseconds kSweepInterval{500};
constexpr std::chrono::milliseconds kAcceptPause{100};  // when descriptors or memory have run out
// Connections beyond the limit that may be open for a moment, to be refused with an answer or to serve an
// operator. Further ones are closed without an answer.
constexpr int64_t kRefusalRoom = 64;
// The kernel would let a slow reader pile up megabytes. Enough for 2 s of PCM at 48 kHz, or 1 MB/s at 200 ms.
constexpr int kSendBufferBytes = 200 << 10;
// A peer that vanished while nothing is sent to it is detected within two minutes.
constexpr int kProbeAfter_s = 60, kProbeInterval_s = 15, kProbes = 4;

void set_option(const Socket& socket, int level, int name, int value) {
  // Best effort: every operation has a deadline as well.
  (void)setsockopt(const_cast<Socket&>(socket).native_handle(), level, name, &value, sizeof value);
}

void prepare(Socket& socket) {
  // Programs that the process starts must not hold connections open.
  (void)fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_SNDBUF, kSendBufferBytes);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kProbeAfter_s);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kProbeInterval_s);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

}  // namespace

Lane::~Lane() { stop(); }

void Lane::bind(const asio::ip::tcp::endpoint& endpoint, bool shared) {
  error_code error;
  acceptor_.open(endpoint.protocol(), error);
  if (!error) {
    const int descriptor = acceptor_.native_handle();
    (void)fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    const int on = 1;
    (void)setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (shared) (void)setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    acceptor_.bind(endpoint, error);
  }
  if (error) fail(ErrorCode::io, "listen: ", endpoint, ": ", error.message());
}

void Lane::listen() {
  error_code error;
  acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) fail(ErrorCode::io, "listen: ", acceptor_.local_endpoint(), ": ", error.message());
}

void Lane::start(int number) {
  asio::co_spawn(context_.get_executor(), accept(), asio::detached);
  sweep();
  thread_ = start_quiet_thread(concat("http-", number), [this] { context_.run(); });
}

void Lane::stop() {
  context_.stop();
  if (thread_.joinable()) thread_.join();
}

Task<> Lane::accept() {
  while (acceptor_.is_open()) {
    auto [error, socket] = co_await acceptor_.async_accept(kAwaitAccept);
    if (!error) {
      welcome(std::move(socket));
    } else if (acceptor_.is_open() && error != asio::error::connection_aborted) {
      log(LogLevel::warning, "accepting a connection: ", error.message());
      pause_.expires_after(kAcceptPause);
      co_await pause_.async_wait(kAwaitAccept);
    }
  }
}

// A connection that cannot be served for lack of memory is closed; accepting must continue.
void Lane::welcome(Socket socket) {
  Presence presence(state_);
  const int64_t open = state_.connections();
  const bool over_limit = open > state_.options.max_connections;
  if (!over_limit) ++state_.accepted;  // others are counted when their request is known
  if (open > state_.options.max_connections + kRefusalRoom) {
    ++state_.refused;
    return;
  }
  prepare(socket);
  try {
    auto connection =
        std::make_shared<Connection>(state_, std::move(presence), std::move(socket), over_limit);
    asio::co_spawn(context_.get_executor(), attend(std::move(connection)), asio::detached);
  } catch (const std::bad_alloc&) {
    log(LogLevel::error, "accepting a connection: out of memory");
  }
}

Task<> Lane::attend(std::shared_ptr<Connection> connection) {
  connections_.insert(connection.get());
  try {
    co_await connection->run();
  } catch (const std::exception& error) {
    log(LogLevel::error, "connection: ", error.what());
  } catch (...) {
    log(LogLevel::error, "connection: an unknown exception");
  }
  connections_.erase(connection.get());
}

void Lane::sweep() {
  const TimePoint now = std::chrono::steady_clock::now();
  for (Connection* connection : connections_) connection->sweep(now);
  sweeper_.expires_after(kSweepInterval);
  sweeper_.async_wait([this](error_code error) {
    if (!error) sweep();
  });
}

std::future<void> Lane::run(std::function<void()> task) {
  auto done = std::make_shared<std::promise<void>>();
  asio::post(context_, [done, task = std::move(task)] {
    task();
    done->set_value();
  });
  return done->get_future();
}

std::future<void> Lane::drain() {
  return run([this] {
    for (Connection* connection : connections_) connection->drain();
  });
}

// Clients in the kernel's queue have connected already: closing the acceptor would reset them.
std::future<void> Lane::stop_listening() {
  return run([this] {
    error_code error;
    acceptor_.non_blocking(true, error);
    while (!error) {
      Socket socket(context_.get_executor());
      acceptor_.accept(socket, error);
      if (!error) welcome(std::move(socket));
    }
    acceptor_.close(error);
  });
}

std::future<int> Lane::cut() {
  auto busy = std::make_shared<std::promise<int>>();
  asio::post(context_, [this, busy] {
    int count = 0;
    // What is cut may leave at once.
    const std::vector<Connection*> all(connections_.begin(), connections_.end());
    for (Connection* connection : all)
      if (connections_.contains(connection)) count += connection->cut();
    busy->set_value(count);
  });
  return busy->get_future();
}

}  // namespace shoal::server
