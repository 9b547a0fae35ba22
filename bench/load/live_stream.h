// A WebSocket over a connection that is open, as its client.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "bench/load/question.h"
#include "bench/load/wire.h"

namespace shoal::load {

class LiveStream {
 public:
  // Bytes of a message: of the next one, or of the one that has begun.
  struct Part {
    boost::system::error_code error;
    size_t bytes = 0;
    bool is_text = false, is_last = false;
  };
  virtual ~LiveStream() = default;
  // Asks the server to switch to it. What it answers instead is the failure.
  virtual Task<std::optional<Failure>> shake_hands(const Url& url, const HeaderFields& fields) = 0;
  // A text message.
  virtual Task<Wire::Transfer> write(const std::string& message) = 0;
  virtual Task<Part> read_some(boost::asio::mutable_buffer into) = 0;
};

// The socket, or what TLS makes of it, outlives the stream.
std::unique_ptr<LiveStream> make_live_stream(Socket& socket);
std::unique_ptr<LiveStream> make_live_stream(boost::asio::ssl::stream<Socket&>& stream);

}  // namespace shoal::load
