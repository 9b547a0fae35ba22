// The server's log: a line for each remark and each request.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "server/http/application.h"
#include "shoal/server_config.h"

namespace shoal::server {

// While it lives, base/log.h's remarks and log_request() become lines, of log_level or graver, as log_format
// says:
//
//   2025-03-01T12:00:00.123Z info    POST /v1/tts 200 id=01JX... route=/v1/tts duration_ms=812.4 ...
//   {"time":"2025-03-01T12:00:00.123Z","level":"info","message":"POST /v1/tts 200","id":"01JX...", ...}
//
// A line is one line of valid UTF-8 (JSON: one object) of bounded length, whatever bytes are in it. A thread
// of its own writes them, so that a reader of standard error who does not keep up holds up nobody: the oldest
// lines of 8,192 are lost then, and their number is logged and counted.
class ServerLog {
 public:
  // `out` stays open; lines go to its descriptor at once. One at a time in a process. Throws
  // Error(internal).
  explicit ServerLog(const ServerConfig& config, std::FILE* out = stderr);
  // Writes what is left, for a reader who takes it: one who takes nothing for a second, or is not done after
  // five, loses the rest. Remarks are dropped from then on.
  ~ServerLog();
  ServerLog(const ServerLog&) = delete;
  ServerLog& operator=(const ServerLog&) = delete;

  class Lines;

 private:
  std::shared_ptr<Lines> lines_;
};

// One line with the request's id, method, path, route, status (0 in JSON, "left" in text: the client left
// before an answer), whether the answer was sent whole, duration, bytes of bodies, the key's name and the
// peer. At level info; answers 200 of the routes that probes and scrapers call every few seconds
// (/health, /ready, /ping, /metrics) at debug. Any thread; nothing without a ServerLog.
void log_request(const Request& request, const RequestRecord& record) noexcept;

// Lines of the current log that were lost because its reader did not keep up. 0 without a ServerLog.
uint64_t lost_log_lines() noexcept;

// Why a request failed, where its answer does not say: a line at level error with the request's id and route;
// without a ServerLog a remark of base/log.h that names them.
void log_failure(const Request& request, std::string_view why) noexcept;

// Why an answer that had begun is not whole: a line with the request's id and route. At level info where the
// client has left, error where it is our fault, else warning.
void log_cut_off(const Request& request, const Error& why) noexcept;

}  // namespace shoal::server
