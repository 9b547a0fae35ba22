#include "bench/load/live_stream.h"

#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/ssl.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace shoal::load {
namespace {

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;

constexpr size_t kMostMessageBytes = size_t{64} << 20;

Failure refusal_of(const boost::system::error_code& error, const websocket::response_type& answer) {
  const unsigned status = answer.result_int();
  if (error != websocket::error::upgrade_declined)
    return {"bad_http", concat("no WebSocket: ", error.message())};
  const std::string told = concat("status ", status, ": ", printable(answer.body(), 200));
  // A page, say, is no error of the server's.
  if (status < 400) return {"bad_http", concat("no WebSocket, but ", told)};
  return {concat("status_", status), told};
}

template <typename Stream>
class LiveStreamOver final : public LiveStream {
 public:
  explicit LiveStreamOver(Stream& stream) : socket_(stream) { socket_.read_message_max(kMostMessageBytes); }

  Task<std::optional<Failure>> shake_hands(const Url& url, const HeaderFields& fields) override {
    socket_.set_option(websocket::stream_base::decorator([&fields](websocket::request_type& request) {
      request.set(boost::beast::http::field::user_agent, "shoal-bench");
      for (const auto& [name, value] : fields) request.insert(name, value);
    }));
    websocket::response_type answer;
    const std::string authority = url.authority();
    auto [error] = co_await socket_.async_handshake(answer, authority, url.path, kAwait);
    std::optional<Failure> failure;
    if (error) failure = refusal_of(error, answer);
    co_return failure;
  }

  Task<Wire::Transfer> write(const std::string& message) override {
    socket_.text(true);
    auto [error, bytes] = co_await socket_.async_write(asio::buffer(message), kAwait);
    Wire::Transfer transfer{error, bytes};
    co_return transfer;
  }

  Task<Part> read_some(asio::mutable_buffer into) override {
    auto [error, bytes] = co_await socket_.async_read_some(into, kAwait);
    Part part{error, bytes, socket_.got_text(), socket_.is_message_done()};
    co_return part;
  }

 private:
  // Without compression: sound does not shrink.
  websocket::stream<Stream&, false> socket_;
};

}  // namespace

std::unique_ptr<LiveStream> make_live_stream(Socket& socket) {
  return std::make_unique<LiveStreamOver<Socket>>(socket);
}

std::unique_ptr<LiveStream> make_live_stream(asio::ssl::stream<Socket&>& stream) {
  return std::make_unique<LiveStreamOver<asio::ssl::stream<Socket&>>>(stream);
}

}  // namespace shoal::load
