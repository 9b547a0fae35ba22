#include "runtime/engine/ledger.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>

#include "base/clock.h"
#include "base/error.h"
#include "base/trace.h"

namespace shoal::runtime {
namespace {

constexpr std::chrono::milliseconds kMeanwhile{20};

// Upper bounds in seconds; latencies from a millisecond to a minute.
constexpr std::array<double, 16> kSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                             0.5,   1,      2.5,   5,    10,    20,   40,  60};
constexpr std::array<double, 12> kRatios = {0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 5};
constexpr std::array<double, 13> kBatches = {1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256};

// The way of a request, which others overlap; stages that it did not reach took 0.
void trace_request(uint64_t track, bool completed, const SpeechSummary& summary) {
  const auto us = [](double seconds) { return static_cast<int64_t>(std::max(0.0, seconds) * 1e6); };
  const int64_t end = now_us();
  trace_past("request", track, end - us(summary.total_s), end,
             {{"seed", summary.seed},
              {"completed", completed},
              {"frames", summary.frames},
              {"prepared_us", us(summary.prepared_s)},
              {"queued_us", us(summary.admitted_s - summary.prepared_s)},
              {"first_audio_us", us(summary.first_audio_s)}});
}

}  // namespace

Ledger::Ledger(int max_queue, int max_waiting_room)
    : max_queue_(max_queue), max_waiting_room_(max_waiting_room) {
  statistics_.queue_wait_s = Histogram(kSeconds);
  statistics_.first_audio_s = Histogram(kSeconds);
  statistics_.chunk_gap_s = Histogram(kSeconds);
  statistics_.step_s = Histogram(kSeconds);
  statistics_.codec_pass_s = Histogram(kSeconds);
  statistics_.real_time_factor = Histogram(kRatios);
  statistics_.batch_size = Histogram(kBatches);
}

int64_t& Ledger::count_of(Stage stage) {
  switch (stage) {
    case Stage::preparing:
      return statistics_.preparing;
    case Stage::waiting:
      return statistics_.waiting;
    case Stage::active:
      break;
  }
  return active_;
}

void Ledger::take_place(Stage stage, uint64_t client) {
  if (stage != Stage::active) ++places_[client];
}

void Ledger::give_place(Stage stage, uint64_t client) noexcept {
  if (stage == Stage::active) return;
  const auto place = places_.find(client);
  if (place != places_.end() && --place->second == 0) places_.erase(place);
}

void Ledger::check_room(uint64_t client) {
  if (queued() >= max_queue_)
    fail(ErrorCode::resource_exhausted, "the batch queue is full: ", queued(), " requests wait (max_queue ",
         max_queue_, "); try again later");
  if (queued() < max_queue_ / 2) return;
  const auto place = places_.find(client);
  const int64_t own = place == places_.end() ? 0 : place->second;
  const int64_t others = static_cast<int64_t>(places_.size()) - (own > 0);
  if (others > 0 && own >= max_queue_ / (others + 1))
    fail(ErrorCode::resource_exhausted, "the queue is filling up and this client has ", own,
         " requests in it already, his share of max_queue ", max_queue_, "; try again later");
}

void Ledger::wait_for_room(std::unique_lock<std::mutex>& lock, const QueueEntry& entry) {
  const auto is_over = [this] { return closed_ || queued() < std::min(max_queue_, max_waiting_room_); };
  while (!changed_.wait_for(lock, entry.cancel, kMeanwhile, is_over) && !entry.cancel.stop_requested()) {
    if (!entry.meanwhile) continue;
    lock.unlock();  // the waiting caller may end requests in its callback
    entry.meanwhile();
    lock.lock();
  }
  if (entry.cancel.stop_requested())
    fail(ErrorCode::cancelled, "cancelled while it waited for room in the queue");
}

void Ledger::enter(Stage stage, uint64_t client, const QueueEntry& entry) {
  std::unique_lock lock(mutex_);
  if (entry.wait) wait_for_room(lock, entry);
  if (closed_) fail(ErrorCode::unavailable, "the engine is stopping and takes no new requests");
  ++statistics_.submitted;
  try {
    if (!entry.wait) check_room(client);
    take_place(stage, client);
  } catch (...) {
    ++statistics_.refused;
    throw;
  }
  ++count_of(stage);
}

void Ledger::move(Stage from, Stage to, uint64_t client) {
  {
    const std::lock_guard lock(mutex_);
    --count_of(from);
    ++count_of(to);
    if (to == Stage::active) give_place(from, client);
  }
  changed_.notify_all();
}

void Ledger::abandon(Stage stage, uint64_t client) {
  {
    const std::lock_guard lock(mutex_);
    --count_of(stage);
    give_place(stage, client);
    ++statistics_.failed;
  }
  changed_.notify_all();
}

void Ledger::leave(SpeechState& state, Stage stage, uint64_t client, std::optional<Error> error) {
  const std::optional<ErrorCode> code = error ? std::optional(error->code()) : std::nullopt;
  state.end(std::move(error), [&](const SpeechSummary& summary) {
    const std::lock_guard lock(mutex_);
    --count_of(stage);
    count_end(code, summary);
    give_place(stage, client);
    if (stage == Stage::active) statistics_.queue_wait_s.add(summary.admitted_s - summary.prepared_s);
    if (stage == Stage::waiting) statistics_.queue_wait_s.add(summary.total_s - summary.prepared_s);
    if (is_tracing()) trace_request(ended(), !code, summary);
  });
  changed_.notify_all();
}

uint64_t Ledger::ended() const {
  return statistics_.completed + statistics_.cancelled + statistics_.expired + statistics_.failed;
}

void Ledger::count_end(std::optional<ErrorCode> code, const SpeechSummary& summary) {
  if (!code) {
    ++statistics_.completed;
    statistics_.first_audio_s.add(summary.first_audio_s);
    statistics_.real_time_factor.add(summary.real_time_factor());
  } else if (*code == ErrorCode::cancelled) {
    ++statistics_.cancelled;
  } else if (*code == ErrorCode::deadline_exceeded) {
    ++statistics_.expired;
  } else {
    ++statistics_.failed;
  }
}

void Ledger::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

bool Ledger::wait_until_empty(int64_t until_us) {
  std::unique_lock lock(mutex_);
  const auto empty = [this] { return statistics_.preparing + statistics_.waiting + active_ == 0; };
  if (until_us != 0)
    return changed_.wait_until(
        lock, std::chrono::steady_clock::time_point(std::chrono::microseconds(until_us)), empty);
  changed_.wait(lock, empty);
  return true;
}

int64_t Ledger::open() const {
  const std::lock_guard lock(mutex_);
  return statistics_.preparing + statistics_.waiting + active_;
}

void Ledger::count_step(int64_t batch, int64_t frames, double seconds, double audio_s) {
  const std::lock_guard lock(mutex_);
  recent_batches_[statistics_.steps % recent_batches_.size()] = batch;
  ++statistics_.steps;
  statistics_.frames += static_cast<uint64_t>(frames);
  statistics_.batch_size.add(static_cast<double>(batch));
  statistics_.step_s.add(seconds);
  statistics_.audio_s += audio_s;
}

void Ledger::count_codec_pass(double seconds, double audio_s) {
  const std::lock_guard lock(mutex_);
  ++statistics_.codec_passes;
  statistics_.audio_s += audio_s;
  statistics_.codec_pass_s.add(seconds);
}

void Ledger::count_gap(double seconds) {
  const std::lock_guard lock(mutex_);
  statistics_.chunk_gap_s.add(seconds);
}

void Ledger::count_underrun() {
  const std::lock_guard lock(mutex_);
  ++statistics_.underruns;
}

void Ledger::count_preemption() {
  const std::lock_guard lock(mutex_);
  ++statistics_.preemptions;
}

void Ledger::count_retry() {
  const std::lock_guard lock(mutex_);
  ++statistics_.retried_steps;
}

void Ledger::set_kv(const KvStatistics& kv) {
  const std::lock_guard lock(mutex_);
  statistics_.kv = kv;
}

void Ledger::set_activity(int64_t running, int64_t paused, int64_t finishing) {
  const std::lock_guard lock(mutex_);
  statistics_.running = running;
  statistics_.paused = paused;
  statistics_.finishing = finishing;
}

Statistics Ledger::statistics() const {
  const std::lock_guard lock(mutex_);
  Statistics copy = statistics_;
  // A request that was admitted since the activity was last described runs.
  copy.running = std::max(copy.running, active_ - copy.paused - copy.finishing);
  const auto recent = static_cast<int64_t>(std::min<uint64_t>(copy.steps, recent_batches_.size()));
  const int64_t sum = std::accumulate(recent_batches_.begin(), recent_batches_.begin() + recent, int64_t{0});
  if (recent > 0) copy.recent_batch_size = static_cast<double>(sum) / static_cast<double>(recent);
  return copy;
}

}  // namespace shoal::runtime
