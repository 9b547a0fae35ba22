// What all connections of a transport share.
#pragma once

#include <atomic>
#include <boost/asio/ssl/context.hpp>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "server/http/application.h"
#include "server/http/body_budget.h"
#include "server/http/transport.h"

namespace shoal::server {

struct TransportState {
  TransportState(TransportOptions wanted, Application& served)
      : options(std::move(wanted)), application(served), bodies(options.max_body_memory_bytes) {}

  const TransportOptions options;
  Application& application;
  std::unique_ptr<boost::asio::ssl::context> tls;  // nullptr: plain
  BodyBudget bodies;
  std::atomic<int64_t> connections{0}, websockets{0};
  std::atomic<uint64_t> accepted{0}, refused{0};
  std::atomic<bool> draining{false};

  // A connection is gone.
  void left();
  // True: none is open any more.
  bool wait_until_empty(std::chrono::milliseconds patience);

 private:
  std::mutex mutex_;
  std::condition_variable empty_;
};

}  // namespace shoal::server
