// A WebSocket on the channel of a connection.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "server/http/body_budget.h"
#include "server/http/channel.h"
#include "server/http/exchange.h"

namespace shoal::server {

struct WebSocketLimits {
  int64_t max_message_bytes = 0;
  // A peer that sends nothing for half of it, while it is read from, is pinged; after all of it the peer
  // counts as dead.
  std::chrono::milliseconds idle_timeout{75'000};
  std::chrono::milliseconds write_timeout{60'000};  // for a piece of at most 64 KiB
  std::string subprotocol;                          // in the upgrade's answer; empty: none
};

// The connection's view of a WebSocket.
class ServedWebSocket : public WebSocket {
 public:
  // Answers the upgrade. False: that could not be sent.
  virtual Task<bool> accept() = 0;
  // Sends a ping when it is due; `owner` holds socket and channel until the ping is sent. False: the peer has
  // been silent, or has read nothing, for too long.
  virtual bool sweep(TimePoint now, std::shared_ptr<void> owner) = 0;
  virtual bool closed_cleanly() const = 0;
  virtual uint64_t bytes_received() const = 0;
  virtual uint64_t bytes_sent() const = 0;
};

// `request` has passed check_websocket(). Channel, request and budget must outlive it. `budget`: for
// messages, from their first part to the next read().
std::unique_ptr<ServedWebSocket> make_web_socket(Channel& channel, const Request& request,
                                                 const WebSocketLimits& limits, BodyBudget& budget);

}  // namespace shoal::server
