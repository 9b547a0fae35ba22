// The socket of a connection, plain or under TLS, with a deadline.
#pragma once

#include <boost/asio/append.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "server/http/task.h"

namespace shoal::server {

using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, Executor>;
using TimePoint = std::chrono::steady_clock::time_point;

// One reader and one writer at a time. The deadline is a field that the thread's sweep compares with its
// clock: a timer for each operation would cost more than the operation.
class Channel {
 public:
  using Error = boost::system::error_code;
  struct Transfer {
    Error error;
    size_t bytes = 0;
  };

  // `tls`: nullptr for plain connections. `write_timeout`: time without the client reading a byte.
  Channel(Socket socket, boost::asio::ssl::context* tls, std::chrono::milliseconds write_timeout);

  // Operations that are not done by then are cancelled, and expired() is true from then on.
  void set_deadline(std::chrono::milliseconds from_now);
  void clear_deadline() { deadline_ = TimePoint::max(); }
  bool expired() const { return expired_; }
  void sweep(TimePoint now);

  // The TLS handshake; does nothing on plain connections.
  Task<Error> open();
  Task<Transfer> read_some(boost::asio::mutable_buffer into);
  // Returns when the kernel has taken everything. Sets its own deadline for the duration of the call.
  Task<Error> write(boost::asio::const_buffer first, boost::asio::const_buffer second = {},
                    boost::asio::const_buffer third = {});
  // Shuts down sending, then reads what the peer still sends until it closes or `patience` is over: closing a
  // socket with unread bytes resets the connection, and the peer might never see the answer.
  Task<> finish(std::chrono::milliseconds patience);
  void cancel();        // cancels operations that wait for the socket
  void stop_reading();  // bytes that have arrived can still be read, then comes the end
  void close();
  void reset();  // so that the peer knows that something is missing

  // The next reader gets these first.
  void unread(std::string bytes) { unread_ = std::move(bytes); }
  Socket& socket() { return socket_; }

  // The interface that Beast expects of a stream.
  using executor_type = Executor;
  executor_type get_executor() { return socket_.get_executor(); }
  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token);
  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token);

 private:
  Socket socket_;
  std::unique_ptr<boost::asio::ssl::stream<Socket&>> tls_;
  const std::chrono::milliseconds write_timeout_;
  TimePoint deadline_ = TimePoint::max();
  bool expired_ = false, finishing_ = false;
  std::string unread_;
};

template <typename Buffers, typename Token>
auto Channel::async_read_some(const Buffers& buffers, Token&& token) {
  return boost::asio::async_initiate<Token, void(Error, size_t)>(
      [this](auto handler, const Buffers& into) {
        if (!unread_.empty()) {
          const size_t bytes = boost::asio::buffer_copy(into, boost::asio::buffer(unread_));
          unread_.erase(0, bytes);
          boost::asio::post(get_executor(), boost::asio::append(std::move(handler), Error(), bytes));
        } else if (tls_ != nullptr) {
          tls_->async_read_some(into, std::move(handler));
        } else {
          socket_.async_read_some(into, std::move(handler));
        }
      },
      token, buffers);
}

template <typename Buffers, typename Token>
auto Channel::async_write_some(const Buffers& buffers, Token&& token) {
  return boost::asio::async_initiate<Token, void(Error, size_t)>(
      [this](auto handler, const Buffers& from) {
        if (tls_ != nullptr)
          tls_->async_write_some(from, std::move(handler));
        else
          socket_.async_write_some(from, std::move(handler));
      },
      token, buffers);
}

}  // namespace shoal::server
