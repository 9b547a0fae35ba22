// What all connections of a transport share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "server/http/application.h"
#include "server/http/body_budget.h"
#include "server/http/served_certificate.h"
#include "server/http/transport.h"

namespace shoal::server {

struct TransportState {
  TransportState(TransportOptions wanted, Application& served)
      : options(std::move(wanted)), application(served), bodies(options.max_body_memory_bytes) {}

  const TransportOptions options;
  Application& application;
  std::unique_ptr<ServedCertificate> certificate;  // nullptr: plain
  BodyBudget bodies;
  // Connections accepted before a drain, and since: the latter are told of the drain and wait for nothing.
  std::atomic<int64_t> residents{0}, visitors{0};
  std::atomic<int64_t> websockets{0};  // of the residents
  std::atomic<uint64_t> accepted{0}, refused{0};
  std::atomic<bool> draining{false};

  int64_t connections() const { return residents + visitors; }
  // True: no connection is open any more.
  bool wait_for_residents(std::chrono::milliseconds patience);
  bool wait_for_all(std::chrono::milliseconds patience);

 private:
  friend class Presence;

  std::mutex mutex_;
  std::condition_variable empty_;
};

// One open connection, for as long as it lives.
class Presence {
 public:
  explicit Presence(TransportState& state)
      : state_(&state), visits_(state.draining), count_(visits_ ? state.visitors : state.residents) {
    ++count_;
  }
  Presence(Presence&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)), visits_(other.visits_), count_(other.count_) {}
  Presence& operator=(Presence&&) = delete;
  ~Presence();

  bool visits() const { return visits_; }

 private:
  TransportState* state_;
  bool visits_;
  std::atomic<int64_t>& count_;
};

}  // namespace shoal::server
