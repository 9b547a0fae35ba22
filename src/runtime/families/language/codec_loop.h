// Decodes codes to sound for every request in generation.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/engine/ledger.h"
#include "runtime/engine/wake_signal.h"
#include "runtime/families/language/model_calls.h"
#include "runtime/families/language/speech_job.h"
#include "runtime/schedule/codec_schedule.h"

namespace shoal::runtime {

class CodecLoop {
 public:
  struct Parts {
    const SpeechModel& model;
    ModelCalls& calls;
    dac::CodecStatePool& states;
    ops::Context ctx;
    // With its own thread and team; otherwise the decode loop's thread calls round() between its steps. With
    // few CPUs that is faster: two threads that take turns wait for each other's wake-ups.
    bool own_thread;
    Ledger& ledger;
    std::shared_ptr<WakeSignal> decode_loop;  // rung when a job has closed
  };
  explicit CodecLoop(const Parts& parts);
  // Every job must have closed.
  ~CodecLoop();
  CodecLoop(const CodecLoop&) = delete;
  CodecLoop& operator=(const CodecLoop&) = delete;

  // Takes a job over: decodes the codes that it publishes, and, when its generation has ended, ends its state
  // and leaves the ledger. Never more jobs at once than the pool has streams. Allocates nothing. Any thread.
  void admit(std::shared_ptr<SpeechJob> job);
  // Something was published, ended or cancelled.
  void ring() { (parts_.own_thread ? wake_ : *parts_.decode_loop).ring(); }

  bool has_own_thread() const { return parts_.own_thread; }
  // Whether passes from now on keep to the codec's part of the device. Any thread.
  void divide_device(bool divided) { divided_.store(divided, std::memory_order_relaxed); }
  // Whether passes from now on are to keep out of the step's way (UrgentPasses). Of a GPU's loop with its own
  // thread; others ignore it. Any thread.
  void put_off_passes(bool off);
  // One pass over the due streams; returns whether there were any. Otherwise wake_us is the next deadline (0:
  // none). Never throws. Only for the loop's thread.
  bool round(int64_t& wake_us) noexcept;

  int64_t workspace_bytes() const { return workspace_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Stream {
    std::shared_ptr<SpeechJob> job;
    std::optional<dac::CodecStream> codec;
    size_t utterance = 0;
    int64_t decoded = 0;                // frames of it that have become sound
    int64_t shaped = 0;                 // frames of it already processed by the job's prosody
    int64_t samples = 0;                // delivered, of all utterances
    bool ran_dry = false;               // its listener has had to wait
    int64_t first_us = 0, last_us = 0;  // when the first and the latest piece were delivered
  };

  void run();
  bool pass();
  void take_incoming();
  void settle();
  bool move_on(Stream& stream);
  void close(Stream& stream, std::optional<Error> error);
  void fail(Stream& stream, Error error);
  CodecJob describe(const Stream& stream, int64_t now) const;
  int64_t lead_us(const Stream& stream, int64_t now) const;
  void decode(const std::vector<CodecPiece>& pieces);
  void decode_together(const std::vector<CodecPiece>& pieces);
  void decode_alone(Stream& stream, int64_t target);
  int64_t earliest_deadline() const;
  CodecLimits limits(bool only_urgent) const;
  bool runs_beside_steps() const;  // any thread
  void deliver(Stream& stream, int64_t frames, std::span<const float> pcm);
  std::optional<Error> give_rest(Stream& stream);
  void give(Stream& stream, std::span<const float> sound);
  Stream& find(JobId id);

  const Parts parts_;
  ops::Context ctx_;
  const int64_t frame_us_, hop_, codebooks_;
  WakeSignal wake_;

  std::mutex incoming_mutex_;
  std::vector<std::shared_ptr<SpeechJob>> incoming_;

  // Of the loop's own thread.
  std::vector<Stream> streams_;
  std::vector<CodecJob> jobs_;
  std::vector<dac::CodecStream*> batch_;
  std::vector<int64_t> targets_;  // what each piece's stream will have decoded
  std::vector<int32_t> offsets_, codes_;
  std::vector<float> pcm_;
  int failed_rounds_ = 0;
  // Of decoding a frame, a mean over passes: a small pass costs more a frame and so makes the next one
  // shorter.
  double frame_cost_us_ = 0;
  UrgentPasses urgent_passes_;

  std::atomic<bool> divided_{false}, put_off_{false};
  std::atomic<int64_t> workspace_bytes_{0};
  std::atomic<bool> exit_{false};
  std::thread thread_;  // last: runs on all of the above
};

}  // namespace shoal::runtime
