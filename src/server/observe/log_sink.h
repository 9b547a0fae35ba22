// The server's log: a line for each message and each request.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "server/http/application.h"
#include "shoal/server_config.h"

namespace shoal::server {

// While it exists, messages of base/log.h and log_request() become lines, if their level is at least
// log_level, in the format log_format:
//
//   2025-03-01T12:00:00.123Z info    POST /v1/tts 200 id=01JX... route=/v1/tts duration_ms=812.4 ...
//   {"time":"2025-03-01T12:00:00.123Z","level":"info","message":"POST /v1/tts 200","id":"01JX...", ...}
//
// A line is one line of valid UTF-8 (JSON: one object) of bounded length, whatever bytes are in it. Its own
// thread writes them, so that a slow reader of standard error delays nothing: beyond 8,192 waiting lines the
// oldest are lost, and their number is logged and counted.
class ServerLog {
 public:
  // `out` stays open; lines are written to its descriptor at once. One at a time in a process. Throws
  // Error(internal).
  explicit ServerLog(const ServerConfig& config, std::FILE* out = stderr);
  // Writes the remaining lines if the reader takes them: one that reads nothing for a second, or has not
  // finished after five, loses the rest. Later messages are dropped.
  ~ServerLog();
  ServerLog(const ServerLog&) = delete;
  ServerLog& operator=(const ServerLog&) = delete;

  class Lines;

 private:
  std::shared_ptr<Lines> lines_;
};

// Writes one line with the request's id, method, path, route, status (0 in JSON, "left" in text: the client
// left before an answer), whether the answer was sent completely, duration, bytes of bodies, the key's name
// and the peer. Level info; but debug for answers 200 of routes that probes and scrapers call every few
// seconds (/health, /ready, /ping, /metrics). Any thread; does nothing without a ServerLog.
void log_request(const Request& request, const RequestRecord& record) noexcept;

// Lines of the current log that were lost because its reader did not keep up. 0 without a ServerLog.
uint64_t lost_log_lines() noexcept;

// Logs why a request failed if its answer does not say: a line at level error with the request's id and
// route; without a ServerLog a message of base/log.h that names them.
void log_failure(const Request& request, std::string_view why) noexcept;

// Logs why a started answer is incomplete: a line with the request's id and route. Level info if the client
// has left, error if it is our fault, else warning.
void log_cut_off(const Request& request, const Error& why) noexcept;

}  // namespace shoal::server
