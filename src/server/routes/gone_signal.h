// Tells work that waited for its turn whether the client is still there.
#pragma once

#include <chrono>
#include <stop_token>

#include "base/error.h"
#include "server/http/exchange.h"

namespace shoal::server {

// While it lives, the client's leaving stops its token, which any thread may ask. Lives on the connection's
// thread.
class GoneSignal {
 public:
  explicit GoneSignal(Exchange& exchange) : exchange_(exchange) {
    exchange_.on_gone([stop = stop_] { std::stop_source(stop).request_stop(); });
  }
  ~GoneSignal() { exchange_.on_gone({}); }
  GoneSignal(const GoneSignal&) = delete;
  GoneSignal& operator=(const GoneSignal&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

 private:
  Exchange& exchange_;
  std::stop_source stop_;
};

inline void check_not_gone(const std::stop_token& gone) {
  if (gone.stop_requested()) fail(ErrorCode::cancelled, "the client has gone");
}

inline void check_in_time(std::chrono::steady_clock::time_point deadline) {
  if (std::chrono::steady_clock::now() >= deadline)
    fail(ErrorCode::deadline_exceeded, "the request's time was up before its turn came");
}

}  // namespace shoal::server
