// Listens for Wyoming clients: Home Assistant, satellites.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "server/wyoming/channel.h"

namespace shoal::server {

// One thread for all addresses of ServerConfig::wyoming, which is not empty.
class WyomingListener {
 public:
  // `host` and what it refers to outlive the listener.
  explicit WyomingListener(const WyomingHost& host);
  ~WyomingListener();  // stop()
  WyomingListener(const WyomingListener&) = delete;
  WyomingListener& operator=(const WyomingListener&) = delete;

  // Listens and returns. The file of a UNIX socket that nobody listens at is replaced. Throws
  // Error(invalid_argument, io) with the address and why.
  void start();
  std::vector<std::string> addresses() const;  // after start(), with the ports that were free
  // No new connections; those that speak nothing end. Services::draining is set already.
  void drain();
  // Whether every connection has ended within `patience`.
  bool wait(std::chrono::milliseconds patience);
  // Cuts the connections that are left. Afterwards only the destructor may be called.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shoal::server
