// The interface between the transport and its application.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "server/http/exchange.h"

namespace shoal::server {

// The application's decision about a request once its head has arrived.
struct Verdict {
  std::optional<Response> refusal;  // sent at once; the body is not read, the connection closed
  std::optional<Response> answer;   // sent instead of calling handle()
  int64_t max_body_bytes = 0;       // more is answered with refuse(413); for a WebSocket: of one message
  bool websocket = false;           // the request is an upgrade, and welcome
  std::string subprotocol;          // of the WebSocket, chosen from those that the client offers; empty: none
  // An operator asks how the server is: answered even when there are too many connections.
  bool for_operators = false;
};

// For access log and metrics.
struct RequestRecord {
  int status = 0;                               // 0: the client left before an answer began
  bool whole = false;                           // the answer was sent to its end
  uint64_t bytes_received = 0, bytes_sent = 0;  // of bodies
  // From the first byte of the head to the last of the answer.
  std::chrono::steady_clock::duration duration{};
};

// Called on the threads of connections, several at once. Nothing may block.
class Application {
 public:
  virtual ~Application() = default;
  // Sets id, client and route of the request. `upgrade`: it asks for a WebSocket. Must not throw.
  virtual Verdict judge(Request& head, bool upgrade) = 0;
  // Answers the request; its exceptions are the application's own concern and cut the connection.
  virtual Task<> handle(Exchange& exchange) = 0;
  virtual Task<> converse(WebSocket& socket) = 0;
  // The answer to a request that the transport refuses itself: 400 (malformed), 408 (too slow), 413, 417,
  // 426, 431, 501, 503 (too many connections, or no memory for bodies). `head` holds what is known of the
  // request, perhaps nothing; sets its id if judge() has not seen it.
  virtual Response refuse(Request& head, int status, std::string_view message) = 0;
  // The exchange is over.
  virtual void record(const Request& request, const RequestRecord& record) = 0;
};

}  // namespace shoal::server
