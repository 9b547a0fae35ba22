// Every request from its entry to its end, counted.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <unordered_map>

#include "runtime/engine/speech_state.h"
#include "shoal/statistics.h"

namespace shoal::runtime {

// The state of a request.
enum class Stage { preparing, waiting, active };

// How a request comes to the queue.
struct QueueEntry {
  bool wait = false;       // for room, instead of being refused
  std::stop_token cancel;  // ends the waiting
  // Called repeatedly by the waiting thread. An exception ends the waiting.
  std::function<void()> meanwhile;
};

// Thread-safe. The owner of a request calls enter() once when it is admitted and leave() once when it ends.
class Ledger {
 public:
  // max_waiting_room: how many of the queue's places callers that wait for a place (batches) may take, so
  // that the rest stays free for callers that do not wait.
  Ledger(int max_queue, int max_waiting_room);

  // Takes a place in the queue. Throws Error: resource_exhausted when the queue is full, or more than half
  // full and `client` has its share of it, unless `entry` waits (then it waits for a place); cancelled;
  // unavailable once closed.
  void enter(Stage stage, uint64_t client, const QueueEntry& entry);
  void move(Stage from, Stage to, uint64_t client);
  // Ends the state, counts the outcome, and frees the place. `stage`: where it was.
  void leave(SpeechState& state, Stage stage, uint64_t client, std::optional<Error> error);
  // For a request that entered but whose caller got an exception instead of a Speech.
  void abandon(Stage stage, uint64_t client);

  // Nothing more is admitted, and callers that wait for a place give up.
  void close();
  // Waits until all requests have left, but at most until until_us of now_us() (0: forever). True if all have
  // left.
  bool wait_until_empty(int64_t until_us);
  int64_t open() const;

  // One step of the language model, one pass of the codec. audio_s: of a step that makes sound by itself.
  void count_step(int64_t batch, int64_t frames, double seconds, double audio_s = 0);
  void count_codec_pass(double seconds, double audio_s);
  void count_gap(double seconds);
  void count_underrun();
  void count_preemption();
  void count_retry();
  void set_kv(const KvStatistics& kv);
  void set_activity(int64_t running, int64_t paused, int64_t finishing);
  Statistics statistics() const;

 private:
  int64_t& count_of(Stage stage);
  int64_t queued() const { return statistics_.preparing + statistics_.waiting; }
  void check_room(uint64_t client);
  void wait_for_room(std::unique_lock<std::mutex>& lock, const QueueEntry& entry);
  // Adds or removes one place in the queue of a client; `active` requests hold none.
  void take_place(Stage stage, uint64_t client);
  void give_place(Stage stage, uint64_t client) noexcept;
  void count_end(std::optional<ErrorCode> code, const SpeechSummary& summary);
  uint64_t ended() const;  // so far; under the lock

  const int max_queue_, max_waiting_room_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;  // that stop tokens can wake
  Statistics statistics_;
  int64_t active_ = 0;
  std::array<int64_t, 100> recent_batches_{};     // of the last steps, in a ring
  std::unordered_map<uint64_t, int64_t> places_;  // of the queue, by client
  bool closed_ = false;
};

}  // namespace shoal::runtime
