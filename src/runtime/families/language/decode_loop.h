// The thread that owns the language model: admits requests, plans steps, runs them.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/engine/ledger.h"
#include "runtime/engine/wake_signal.h"
#include "runtime/families/language/active_speech.h"
#include "runtime/families/language/codec_loop.h"
#include "runtime/families/language/prefill_budget.h"
#include "runtime/families/language/speech_inbox.h"
#include "runtime/families/language/step_runner.h"
#include "shoal/engine_config.h"

namespace shoal::runtime {

class DecodeLoop {
 public:
  struct Parts {
    const EngineConfig& config;
    const SpeechModel& model;
    ModelCalls& calls;
    dual_ar::KvCache& cache;
    ops::Context ctx;
    CodecLoop& codec;
    Ledger& ledger;
    std::shared_ptr<WakeSignal> wake;
    std::function<void()> release_memory;  // what can be given up when memory runs out
  };
  explicit DecodeLoop(const Parts& parts);
  // Every job must have ended: cancel_all() first.
  ~DecodeLoop();
  DecodeLoop(const DecodeLoop&) = delete;
  DecodeLoop& operator=(const DecodeLoop&) = delete;

  // Queues a job that has entered the ledger as waiting. Any thread. Throws std::bad_alloc, and it is not
  // queued.
  void submit(std::shared_ptr<SpeechJob> job);
  // Ends a request whose clips are being encoded when it is cancelled or late, unless it is claimed before.
  // Any thread. Throws std::bad_alloc, and it is not watched.
  void watch(std::shared_ptr<PreparingSpeech> speech);
  // Every job that is here or comes, or is watched, ends with this error. Any thread.
  // The message is kept as a pointer.
  void cancel_all(ErrorCode code, const char* message);

  int64_t workspace_bytes() const { return workspace_bytes_.load(std::memory_order_relaxed); }
  // For tests, while no request is open: throws Error(internal) unless all pages are accounted for and none
  // is in use.
  void check_pages() const;

 private:
  void run();
  // One round: what happened outside, then one step of the model. Says whether there was anything to do;
  // otherwise wake_us is when there may be (0: when the bell rings).
  bool round(int64_t& wake_us) noexcept;
  bool work(int64_t& wake_us);
  bool run_codec(int64_t& wake_us);
  void end_everything(const SpeechInbox::Stop& stop);
  void end_preparing(int64_t now);
  void forget_closed();
  int64_t admit(int64_t now);
  void admit_job(JobId id);
  void end_waiting(const JobEnd& end);
  bool attach_prefixes(const std::vector<StepRows>& planned);
  void attach_prefix(ActiveSpeech& speech);
  void before_retry();
  StepPlan plan(int64_t now);
  bool step(int64_t now);
  void run_rows(const std::vector<StepRows>& planned);
  void divide_device(int64_t speaking, int64_t prompt_columns);
  void finish_rows(ActiveSpeech& speech, const SequenceRows& rows);
  void finish_utterance(ActiveSpeech& speech);
  void fail(ActiveSpeech& speech, std::exception_ptr error);
  void describe_active(int64_t now);
  ScheduleLimits limits() const;
  int64_t earliest_deadline(int64_t now) const;
  void on_failed_round(Error error);
  ActiveSpeech& find(JobId id);

  const Parts parts_;
  ops::Context ctx_;
  KvPages pages_;
  StepRunner runner_;
  const int64_t frame_us_, prefetch_samples_;
  const bool is_worth_dividing_;  // the device, between decoding and the codec

  SpeechInbox inbox_;

  // Of the loop's own thread.
  std::vector<std::shared_ptr<PreparingSpeech>> preparing_;
  std::vector<std::shared_ptr<SpeechJob>> waiting_;
  std::vector<std::unique_ptr<ActiveSpeech>> active_;
  std::vector<ActiveJob> active_jobs_;  // active_ in the form that the plans read, in the same order
  std::vector<WaitingJob> waiting_jobs_;
  std::vector<SequenceRows> rows_;
  std::vector<ActiveSpeech*> row_owners_;
  int failed_rounds_ = 0;
  bool divided_ = false;
  PrefillBudget prefill_;
  int64_t patience_us_;  // after failed rounds

  std::atomic<int64_t> workspace_bytes_{0};
  std::atomic<bool> exit_{false};
  std::thread thread_;  // last: runs on all of the above
};

}  // namespace shoal::runtime
