// What the server counts, and all of it as Prometheus text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "server/http/transport.h"
#include "shoal/statistics.h"

namespace shoal::server {

// Thread-safe; an update costs well under a microsecond.
class ServerMetrics {
 public:
  ServerMetrics();
  ~ServerMetrics();

  // One exchange is over: requests and latency by route and outcome ("ok", "client_error", "refused", "gone",
  // "server_error"), bytes.
  void record(std::string_view route, const RequestRecord& record);
  void count_error(std::string_view code);  // by ErrorCode name
  void speaking(int change);                // requests that speak now
  void live_first_audio(double seconds);  // of HTTP: from the request's last byte to the first sound written

  // Text of the exposition format 0.0.4: the server's own and the engine's (names shoal_..., units in the
  // name).
  std::string exposition(const Health& engine, const TransportStatistics& transport) const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace shoal::server
