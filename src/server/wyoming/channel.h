// The connection of a Wyoming conversation, as the conversation sees it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/http/application.h"
#include "server/http/exchange.h"
#include "server/routes/services.h"
#include "server/wyoming/event_reader.h"

namespace shoal::server {

// write_text() and write_binary() both send bytes as they are; the code and reason of close() are not sent.
class WyomingChannel : public MessageSink {
 public:
  // The next event; absent: the peer has closed, or close() was called. Throws Error(cancelled) when the
  // connection broke, and invalid_argument, too_large, deadline_exceeded, resource_exhausted when no further
  // event can be read.
  virtual Task<std::optional<WyomingEvent>> read() = 0;
  virtual const std::string& peer() const = 0;  // for the log
};

// What conversations share. Everything outlives them.
struct WyomingHost {
  Services& services;
  // A place among the requests that keep models busy. Throws Error(resource_exhausted).
  std::function<std::shared_ptr<void>(const Request& request)> enter;
  std::function<void(const Request& request, const RequestRecord& record)> record;
  std::string client;  // whose usage it is
};

}  // namespace shoal::server
