// What the server counts, and all metrics as Prometheus text.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "server/http/transport.h"
#include "server/observe/engine_families.h"

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
  // From a request whose body has been read and understood, or the first text of a live utterance, to the
  // first sound written. Not measured for batches, which nobody listens to.
  void live_first_audio(double seconds);

  // Text of the exposition format 0.0.4: the server's own and the engines' (names shoal_..., units in the
  // name). `draining`: shoal_ready is 0. `keys`: what clients have used.
  std::string exposition(std::span<const ModelHealth> models, const TransportStatistics& transport,
                         bool draining = false, std::span<const KeyFigures> keys = {}) const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace shoal::server
