// The thread that speaks: chunks of all requests, batch by batch.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "models/kokoro/step_memory.h"
#include "ops/execution.h"
#include "runtime/batching/batch_plan.h"
#include "runtime/engine/ledger.h"
#include "runtime/families/kokoro/talk.h"

namespace shoal::runtime {

// The network calls that the loop makes; tests replace them by calls that fail.
class KokoroCalls {
 public:
  // For this context only. Throws Error(resource_exhausted).
  KokoroCalls(const kokoro::Kokoro& network, ops::Context& ctx)
      : network_(network), ctx_(ctx), memory_(ctx.graphs ? network.step_memory(ctx) : nullptr) {}
  virtual ~KokoroCalls() = default;
  // between: called between the stages where the CPU computes; null: not called.
  virtual std::vector<kokoro::Spoken> speak(std::span<const kokoro::Utterance> batch,
                                            const kokoro::BetweenStages* between) {
    return memory_ ? network_.speak(ctx_, *memory_, batch)
                   : network_.speak(ctx_, batch, nullptr, nullptr, between);
  }
  // Bytes of the device's memory; 0 without CUDA graphs.
  int64_t step_bytes() const { return memory_ ? memory_->bytes() : 0; }

 private:
  const kokoro::Kokoro& network_;
  ops::Context& ctx_;
  const std::unique_ptr<const kokoro::StepMemory> memory_;
};

class BatchLoop {
 public:
  struct Parts {
    const EngineConfig& config;
    const KokoroModel& model;
    KokoroCalls& calls;
    ops::Execution& execution;  // used only by the loop's thread
    Ledger& ledger;
    std::shared_ptr<WakeSignal> wake;
  };
  explicit BatchLoop(const Parts& parts);
  // Every job must have ended: cancel_all() first.
  ~BatchLoop();
  BatchLoop(const BatchLoop&) = delete;
  BatchLoop& operator=(const BatchLoop&) = delete;

  // Takes a job that entered the ledger as preparing, and ends it in every case. Any thread. After
  // std::bad_alloc the job has not been taken.
  void submit(std::shared_ptr<KokoroJob> job);
  // Every job that is here or comes ends with Error(unavailable). Any thread.
  void cancel_all();

  int64_t workspace_bytes() const { return workspace_bytes_.load(std::memory_order_relaxed); }

 private:
  // A chunk of the plan.
  struct Chosen {
    Talk* talk;
    int64_t index;
  };

  void run();
  void take_incoming();
  void end_talks(int64_t now);
  void end_within_batch(const std::vector<Chosen>& batch);
  void count_activity(std::span<const std::unique_ptr<Talk>> talks);
  std::optional<Error> end_of(const Talk& talk, int64_t now);
  void offer(int64_t now);
  void offer(Talk& talk, int64_t now);
  BatchLimits limits(int64_t now) const;
  int64_t expected_frames(const Talk& talk, const ReadChunk& chunk) const;
  int64_t earliest_deadline() const;

  void speak(const std::vector<size_t>& planned);
  void speak_alone(const Chosen& chosen);
  std::vector<kokoro::Spoken> call(const std::vector<Chosen>& batch);
  void finish(const Chosen& chosen, kokoro::Spoken spoken);

  const Parts parts_;
  const int rate_hz_;
  const int64_t samples_per_frame_;
  const bool device_computes_;

  std::mutex incoming_mutex_;  // guards the members below
  std::deque<std::shared_ptr<KokoroJob>> incoming_;
  bool stopping_ = false;

  // Of the loop's own thread.
  std::vector<std::unique_ptr<Talk>> talks_;
  std::vector<WaitingChunk> waiting_;
  std::vector<Chosen> choices_;  // parallel to waiting_
  ArrivalRate arrivals_;
  double frames_per_symbol_;  // lately, at speed 1
  double chunk_us_ = 0;       // lately, of a chunk in a batch

  std::atomic<int64_t> workspace_bytes_;
  std::atomic<bool> exit_{false};
  std::thread thread_;  // last: runs on all of the above
};

}  // namespace shoal::runtime
