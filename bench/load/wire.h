// The client's end of a connection, plain or under TLS.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/load/failure.h"
#include "bench/load/question.h"
#include "bench/load/url.h"

namespace shoal::load {

namespace asio = boost::asio;
using Executor = asio::io_context::executor_type;
template <typename T = void>
using Task = asio::awaitable<T, Executor>;
using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable_t<Executor>());
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;
using Endpoints = std::vector<asio::ip::tcp::endpoint>;

// Certificates of the system, or of the file `authorities` if it is not empty. Throws Error: not_found,
// invalid_argument.
std::unique_ptr<asio::ssl::context> make_client_tls(const std::string& authorities);

// A time of now_us().
inline std::chrono::steady_clock::time_point time_of(int64_t us) {
  return std::chrono::steady_clock::time_point(std::chrono::microseconds(us));
}

class LiveStream;

class Wire {
 public:
  struct Transfer {
    boost::system::error_code error;
    size_t bytes = 0;
  };

  // `tls`: nullptr for http.
  Wire(Executor executor, asio::ssl::context* tls);
  ~Wire();

  // Connects to the first endpoint that answers; under TLS the certificate must be the host's.
  Task<std::optional<Failure>> open(const Endpoints& endpoints, const Url& url);
  Task<Transfer> write(const std::string& bytes);
  Task<Transfer> read_some(asio::mutable_buffer into);
  // After open(): a WebSocket from now on, which is read and written through live().
  Task<std::optional<Failure>> become_live(const Url& url, const HeaderFields& fields);
  LiveStream& live() { return *live_; }
  // The peer has closed it, or has sent what nobody asked for.
  bool is_stale();
  // The kernel holds little that was not read, so that the server notices a slow reader.
  void hold_little();
  // Ends what is awaited with an error.
  void close();
  // Where its reader puts bytes.
  std::vector<char>& buffer() { return buffer_; }
  Executor executor() { return socket_.get_executor(); }

 private:
  Task<std::optional<Failure>> shake_hands(const Url& url);

  Socket socket_;
  asio::ssl::context* context_;
  std::unique_ptr<asio::ssl::stream<Socket&>> tls_;
  std::unique_ptr<LiveStream> live_;
  std::vector<char> buffer_;
};

}  // namespace shoal::load
