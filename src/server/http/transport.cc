#include "server/http/transport.h"

#include <algorithm>
#include <sys/resource.h>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "server/http/lane.h"
#include "server/http/listen_address.h"
#include "server/http/transport_state.h"

namespace shoal::server {
namespace {

namespace ip = boost::asio::ip;

// For coroutines to end once their connections are cut.
constexpr std::chrono::milliseconds kAfterCut{5000};
// Time to answer clients that came during a drain, or whose time is over.
constexpr std::chrono::milliseconds kForLastWords{1500};
// Files, the engine's own, connections that are refused.
constexpr int kOtherDescriptors = 256;

void validate(const TransportOptions& options) {
  const auto at_least = [](const char* field, int64_t value, int64_t least) {
    if (value < least)
      fail(ErrorCode::invalid_argument, field, ": expected at least ", least, ", got ", value);
  };
  at_least("threads", options.threads, 1);
  at_least("max_connections", options.max_connections, 1);
  at_least("max_body_memory_bytes", options.max_body_memory_bytes, 0);
  at_least("max_head_bytes", options.max_head_bytes, 256);
  at_least("header_timeout", options.header_timeout.count(), 1);
  at_least("body_timeout", options.body_timeout.count(), 1);
  at_least("min_body_rate", options.min_body_rate, 0);
  at_least("tls_watch_interval", options.tls_watch_interval.count(), 1);
  at_least("idle_timeout", options.idle_timeout.count(), 1);
  at_least("write_timeout", options.write_timeout.count(), 1);
  if (options.tls_certificate.empty() != options.tls_key.empty())
    fail(ErrorCode::invalid_argument, "tls_certificate, tls_key: expected both or none, got only ",
         options.tls_key.empty() ? "tls_certificate" : "tls_key");
}

// The usual soft limit is 1,024 files, the hard one far higher.
void allow_descriptors(int max_connections) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = static_cast<rlim_t>(max_connections) + kOtherDescriptors;
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < wanted)
    log(LogLevel::warning, "max_connections: ", max_connections, " need ", wanted,
        " open files, the system allows ", limit.rlim_cur);
}

// SO_REUSEPORT would let a second server share the port in silence: whether it is free is found without.
void require_free(TransportState& state, const ip::tcp::endpoint& endpoint) {
  if (endpoint.port() != 0) Lane(state).bind(endpoint, false);
}

}  // namespace

Presence::~Presence() {
  if (!state_ || --count_ > 0 || !state_->draining) return;
  const std::lock_guard lock(state_->mutex_);
  state_->empty_.notify_all();
}

bool TransportState::wait_for_residents(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return empty_.wait_for(lock, patience, [&] { return residents == 0; });
}

bool TransportState::wait_for_all(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return empty_.wait_for(lock, patience, [&] { return connections() == 0; });
}

class Transport::Impl {
 public:
  Impl(TransportOptions options, Application& application) : state_(std::move(options), application) {
    validate(state_.options);
    endpoint_ = parse_listen_address(state_.options.listen);
    if (!state_.options.tls_certificate.empty())
      state_.certificate =
          std::make_unique<ServedCertificate>(state_.options.tls_certificate, state_.options.tls_key);
  }
  ~Impl() { drain(std::chrono::milliseconds(0), {}); }

  void start() {
    CHECK(lanes_.empty(), "a transport starts once");
    allow_descriptors(state_.options.max_connections);
    const bool shared = state_.options.threads > 1;
    if (shared) require_free(state_, endpoint_);
    std::vector<std::unique_ptr<Lane>> lanes;
    for (int i = 0; i < state_.options.threads; ++i) {
      lanes.push_back(std::make_unique<Lane>(state_));
      lanes.back()->bind(endpoint_, shared);
      endpoint_.port(lanes.back()->port());
    }
    for (const auto& lane : lanes) lane->listen();
    lanes_ = std::move(lanes);
    for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i]->start(static_cast<int>(i));
    if (state_.certificate) state_.certificate->watch(state_.options.tls_watch_interval);
  }

  uint16_t port() const {
    CHECK(!lanes_.empty(), "a port is known after start()");
    return endpoint_.port();
  }

  bool drain(std::chrono::milliseconds grace, const std::function<void()>& end_rest) {
    if (lanes_.empty() || state_.draining.exchange(true)) return true;
    on_all_lanes(&Lane::drain);  // until then one more resident may come in
    const bool all_answered = state_.wait_for_residents(grace);
    const bool ended_early = !all_answered && end_rest;
    if (ended_early) end_rest();
    on_all_lanes(&Lane::stop_listening);
    const bool are_told = all_answered || ended_early;
    const bool all_left = state_.wait_for_all(are_told ? kForLastWords : std::chrono::milliseconds(0));
    const bool none_cut = all_left || cut() == 0;
    for (const auto& lane : lanes_) lane->stop();
    return all_answered || (none_cut && !ended_early);
  }

  TransportStatistics statistics() const {
    return {.connections = state_.connections(),
            .websockets = state_.websockets,
            .body_bytes = state_.bodies.held(),
            .accepted = state_.accepted,
            .refused = state_.refused};
  }

 private:
  void on_all_lanes(std::future<void> (Lane::*task)()) {
    std::vector<std::future<void>> ends;
    for (const auto& lane : lanes_) ends.push_back((*lane.*task)());
    for (auto& end : ends) (void)end.wait_for(kAfterCut);
  }

  int cut() {
    int busy = 0;
    std::vector<std::future<int>> counts;
    for (const auto& lane : lanes_) counts.push_back(lane->cut());
    for (auto& count : counts)
      busy += count.wait_for(kAfterCut) == std::future_status::ready ? count.get() : 1;
    if (!state_.wait_for_all(kAfterCut))
      log(LogLevel::error, "drain: ", state_.connections(), " connections did not end when they were cut");
    return busy;
  }

  TransportState state_;
  ip::tcp::endpoint endpoint_;
  // Kept until the end: threads that still post to a lane need its context.
  std::vector<std::unique_ptr<Lane>> lanes_;
};

Transport::Transport(TransportOptions options, Application& application)
    : impl_(std::make_unique<Impl>(std::move(options), application)) {}
Transport::~Transport() = default;
void Transport::start() { impl_->start(); }
uint16_t Transport::port() const { return impl_->port(); }
bool Transport::drain(std::chrono::milliseconds grace, const std::function<void()>& end_rest) {
  return impl_->drain(grace, end_rest);
}
TransportStatistics Transport::statistics() const { return impl_->statistics(); }

}  // namespace shoal::server
