// HTTP/1.1, WebSockets and TLS on sockets.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/http/application.h"

namespace shoal::server {

struct TransportOptions {
  std::string listen = "127.0.0.1:0";  // host:port, [v6]:port; port 0: any that is free
  int threads = 1;
  int max_connections = 4096;
  int64_t max_body_memory_bytes = int64_t{1} << 30;
  int max_head_bytes = 16 << 10;
  std::chrono::milliseconds header_timeout{10'000}, body_timeout{60'000}, idle_timeout{75'000},
      write_timeout{60'000};
  // Bytes a second that a body must average once body_timeout has passed; 0: any.
  int64_t min_body_rate = 1024;
  std::string tls_certificate, tls_key;  // PEM files; empty: plain. Read again when they change
  std::chrono::milliseconds tls_watch_interval{2000};
};

struct TransportStatistics {
  int64_t connections = 0;  // open
  int64_t websockets = 0;   // of them
  int64_t body_bytes = 0;   // held by requests now
  uint64_t accepted = 0, refused = 0;
};

class Transport {
 public:
  // Checks the options and reads certificate and key. Throws Error(invalid_argument, not_found, io).
  Transport(TransportOptions options, Application& application);
  ~Transport();  // drain without grace
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  // Listens and returns. Throws Error(io) with the address and why (in use, not permitted).
  void start();
  uint16_t port() const;  // after start()
  // Closes idle connections at once and busy ones after their current answer; returns true when none is left
  // within `grace`. Then `end_rest`, if given, makes the application end its remaining answers, which get a
  // moment to be sent; connections left after that are cut off. Until then a new connection is accepted for
  // one request, which the application may refuse, so that a readiness check is told that the server is not
  // ready. The application ends WebSockets, with 1001. Afterwards only statistics() may be called.
  bool drain(std::chrono::milliseconds grace, const std::function<void()>& end_rest = {});
  TransportStatistics statistics() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shoal::server
