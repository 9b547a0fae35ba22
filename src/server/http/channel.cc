#include "server/http/channel.h"

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/socket_base.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace shoal::server {
namespace {

namespace asio = boost::asio;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable_t<Executor>());

// At most this much is offered at once, so that a slow reader's progress is visible.
constexpr size_t kPiece = 64 << 10;

// Limit of unsent bytes in the kernel. By default it would hold megabytes, minutes of mp3, and hide how fast
// the reader is.
constexpr int kMostUnsentBytes = 128 << 10;

}  // namespace

Channel::Channel(Socket socket, asio::ssl::context* tls, std::chrono::milliseconds write_timeout)
    : socket_(std::move(socket)), write_timeout_(write_timeout) {
  setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kMostUnsentBytes,
             sizeof kMostUnsentBytes);
  if (tls != nullptr) tls_ = std::make_unique<asio::ssl::stream<Socket&>>(socket_, *tls);
}

void Channel::set_deadline(std::chrono::milliseconds from_now) {
  deadline_ = std::chrono::steady_clock::now() + from_now;
  expired_ = false;
}

void Channel::sweep(TimePoint now) {
  if (now < deadline_) return;
  clear_deadline();
  expired_ = true;
  if (finishing_)
    close();
  else
    cancel();
}

Task<Channel::Error> Channel::open() {
  if (tls_ == nullptr) co_return Error();
  auto [error] = co_await tls_->async_handshake(asio::ssl::stream_base::server, kAwait);
  co_return error;
}

Task<Channel::Transfer> Channel::read_some(asio::mutable_buffer into) {
  auto [error, bytes] = co_await async_read_some(into, kAwait);
  co_return Transfer{error, bytes};
}

Task<Channel::Error> Channel::write(asio::const_buffer first, asio::const_buffer second,
                                    asio::const_buffer third) {
  const std::array<asio::const_buffer, 3> parts = {first, second, third};
  set_deadline(write_timeout_);
  // Called before each piece with the bytes taken so far.
  const auto next_piece = [this, taken = size_t{0}](const Error& error, size_t bytes) mutable {
    if (bytes > taken) set_deadline(write_timeout_);
    taken = bytes;
    return error ? size_t{0} : kPiece;
  };
  Error error;
  if (tls_ == nullptr) {
    auto [plain_error, bytes] = co_await asio::async_write(socket_, parts, next_piece, kAwait);
    error = plain_error;
  } else {
    // Otherwise each part would be its own TLS record.
    std::string flat;
    flat.reserve(asio::buffer_size(parts));
    for (const asio::const_buffer& part : parts)
      flat.append(static_cast<const char*>(part.data()), part.size());
    auto [tls_error, bytes] = co_await asio::async_write(*tls_, asio::buffer(flat), next_piece, kAwait);
    error = tls_error;
  }
  clear_deadline();
  co_return error;
}

Task<> Channel::finish(std::chrono::milliseconds patience) {
  finishing_ = true;
  set_deadline(patience);
  if (tls_ != nullptr) co_await tls_->async_shutdown(kAwait);
  Error ignored;
  socket_.shutdown(asio::socket_base::shutdown_send, ignored);
  std::array<char, 4096> rest;
  Transfer transfer;
  while (!transfer.error && socket_.is_open()) {
    auto [error, bytes] = co_await socket_.async_read_some(asio::buffer(rest), kAwait);
    transfer = {error, bytes};
  }
}

void Channel::cancel() {
  Error ignored;
  socket_.cancel(ignored);
}

void Channel::stop_reading() {
  Error ignored;
  socket_.shutdown(asio::socket_base::shutdown_receive, ignored);
}

void Channel::close() {
  Error ignored;
  socket_.close(ignored);
}

void Channel::reset() {
  Error ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  socket_.close(ignored);
}

}  // namespace shoal::server
