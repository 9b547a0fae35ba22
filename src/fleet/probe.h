// GET /ready of one server without waiting: it goes on whenever its socket can be read or written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fleet/watch.h"

namespace shoal::fleet {

// Where a server listens.
struct Target {
  std::string host = "127.0.0.1";  // IPv4
  int port = 0;
  std::string socket;  // a path in place of them
  std::string header;  // besides; a whole line
};

class Probe {
 public:
  Probe() = default;
  ~Probe() { end(); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // Begins a check, which is silent if no status line has come at `deadline_us`.
  void begin(const Target& target, int64_t deadline_us);
  bool is_under_way() const { return under_way_; }
  void end();

  int socket() const { return socket_; }  // to poll; -1: the connection was refused
  short events() const;
  // 200: ready; another status: unready. Nothing while neither an answer nor the deadline has come.
  std::optional<CheckResult> go_on(int64_t now_us);

 private:
  std::optional<CheckResult> step();
  std::optional<CheckResult> read_status();

  int socket_ = -1;
  bool under_way_ = false, sent_ = false;
  int64_t deadline_us_ = 0;
  std::string request_, head_;
};

// 0 if a worker can listen on 127.0.0.1:`port`, otherwise the errno that says why not.
int error_of_port(int port);

}  // namespace shoal::fleet
