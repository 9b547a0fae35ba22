// Sends messages of an open conversation: from several coroutines, one message at a time.
#pragma once

#include <string>

#include "server/http/exchange.h"
#include "server/routes/signal.h"

namespace shoal::server {

class LiveWriter {
 public:
  explicit LiveWriter(MessageSink& socket) : socket_(socket), free_(socket.executor()) {}

  // Each waits for its turn and until the socket has taken the message. Throws as the socket does; broken()
  // is true from then on.
  Task<> text(std::string message);
  Task<> sound(std::string bytes);
  Task<> close(uint16_t code, std::string reason);
  bool broken() const { return broken_; }
  Executor executor() const { return socket_.executor(); }

 private:
  enum class Kind { text, sound, close };
  Task<> send(Kind kind, std::string data, uint16_t code);

  MessageSink& socket_;
  Signal free_;
  bool busy_ = false, broken_ = false;
};

}  // namespace shoal::server
