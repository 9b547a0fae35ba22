// One request and its answer.
#pragma once

#include <functional>
#include <string_view>

#include "server/http/message.h"
#include "server/http/task.h"

namespace shoal::server {

// Lives on the thread of its connection: only code of that thread touches it (others post to executor()).
// Every Task of it throws Error(cancelled) once the client is gone, and Error(deadline_exceeded) when it
// takes no byte for write_timeout_s.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const Request& request() const = 0;
  virtual Executor executor() const = 0;

  // A whole answer.
  virtual Task<> respond(Response response) = 0;
  // An answer in pieces: head (its body, if any, is the first piece), pieces, end. Each piece is sent at
  // once, and write() returns when the socket has taken it: a slow reader delays only its own handler.
  // Chunked; for HTTP/1.0 the end is the close of the connection. An answer that is not ended when its
  // handler returns or throws is cut off, so that the client sees that it is incomplete.
  virtual Task<> begin(Response head) = 0;
  virtual Task<> write(std::string_view bytes) = 0;
  virtual Task<> end() = 0;
  // respond() or begin() was called.
  virtual bool begun() const = 0;

  // Called once, on the connection's thread, when the client has closed or reset the connection before its
  // answer was whole; at once if it has already. It must not block. An empty function removes it.
  virtual void on_gone(std::function<void()> notify) = 0;
};

// Takes the messages of an open conversation. The same thread rules; one writer at a time.
class MessageSink {
 public:
  virtual ~MessageSink() = default;
  virtual Executor executor() const = 0;
  virtual Task<> write_text(std::string_view text) = 0;
  virtual Task<> write_binary(std::string_view bytes) = 0;
  // Codes of RFC 6455: 1000 normal, 1001 going away, 1008 policy, 1009 too big, 1011 our fault, 1013
  // try again later (IANA's registry).
  virtual Task<> close(uint16_t code, std::string_view reason) = 0;
};

// An open WebSocket. The same thread rules; one reader and one writer at a time.
class WebSocket : public MessageSink {
 public:
  struct Message {
    bool text = true;  // else binary
    std::string data;  // text has been checked to be UTF-8
  };

  virtual const Request& request() const = 0;  // that was upgraded

  // The next message of at most the route's max_body_bytes; absent: the peer has closed. Pings are answered.
  // It counts as memory of bodies until the next read(). Throws Error(cancelled) when the connection broke or
  // the peer violated the protocol, Error(resource_exhausted) when there is no memory for it (the peer has
  // been informed).
  virtual Task<std::optional<Message>> read() = 0;
};

}  // namespace shoal::server
