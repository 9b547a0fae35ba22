// Shared by a request's reader and the engine: samples not yet read, and how the request ended.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/function_ref.h"
#include "runtime/engine/request_deadline.h"
#include "runtime/engine/voice_reference.h"
#include "runtime/engine/wake_signal.h"
#include "shoal/speech.h"

namespace shoal::runtime {

// Thread-safe. One thread at a time appends samples; the end follows the last of them, once.
class SpeechState {
 public:
  using ClockUs = int64_t (*)();
  // engine: signalled when the reader does something that the engine may wait for. clock: also that of
  // `deadline`.
  SpeechState(int sample_rate_hz, uint64_t seed, std::shared_ptr<WakeSignal> engine,
              RequestDeadline deadline = {}, ClockUs clock = now_us);

  // --- The engine's side.
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  // Whether more samples than this are unread. If so, the engine waits for the reader to take them: reading
  // then rings the bell.
  bool pause_beyond(int64_t samples);
  // RequestDeadline::at_us.
  int64_t deadline_us(int64_t now) const;
  // Throws std::bad_alloc and then appends nothing. Samples of a cancelled speech are dropped.
  void append(std::span<const float> samples) { append(samples, {}); }
  // With the words that are heard in them.
  void append(std::span<const float> samples, std::vector<SpokenWord> words);
  // Changes the summary under the lock.
  void update(FunctionRef<void(SpeechSummary&)> change);
  void set_progress(double fraction, int64_t frames);
  // The spoken codes, for codes(); set before the end.
  void keep_codes(std::vector<VoiceReference> spoken);
  // Ends it; later calls are our own fault (CHECK). error: absent after success. `count` sees the final
  // summary before the reader can know of the end; it must not touch this state.
  void end(std::optional<Error> error, FunctionRef<void(const SpeechSummary&)> count);

  // --- The reader's side: Speech's methods (shoal/speech.h).
  int sample_rate_hz() const { return sample_rate_hz_; }
  std::vector<float> next();
  std::optional<std::vector<float>> try_next(std::chrono::milliseconds patience);
  std::vector<float> read_all();
  void on_ready(std::function<void()> notify);
  void cancel();
  bool ended() const;
  std::optional<Error> error() const;
  SpeechSummary summary() const;
  SpeechProgress progress() const;
  std::vector<int32_t> codes() const;
  std::vector<SpokenWord> words(size_t first) const;

 private:
  std::vector<float> take(std::unique_lock<std::mutex>& lock);
  void notify() noexcept;

  const int sample_rate_hz_;
  const std::shared_ptr<WakeSignal> engine_;
  const ClockUs clock_;
  const int64_t start_us_;
  std::atomic<bool> cancelled_{false};

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable arrived_;
  std::vector<float> unread_;
  RequestDeadline deadline_;
  bool paused_ = false, ended_ = false;
  std::optional<Error> error_;
  SpeechSummary summary_;
  SpeechProgress progress_;
  std::vector<VoiceReference> spoken_;
  std::vector<SpokenWord> words_;

  std::recursive_mutex notify_mutex_;  // held while notify_ runs, which may drop the reader's handle
  std::shared_ptr<std::function<void()>> notify_;
};

}  // namespace shoal::runtime
