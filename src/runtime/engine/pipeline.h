// One loaded model with everything that makes it speak for many: threads, memory, caches.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/thread_team.h"
#include "ops/device_state.h"
#include "ops/execution.h"
#include "runtime/engine/clip_encoder.h"
#include "runtime/engine/codec_loop.h"
#include "runtime/engine/decode_loop.h"
#include "runtime/engine/preparer.h"
#include "shoal/engine.h"
#include "shoal/engine_config.h"
#include "shoal/speech.h"
#include "shoal/speech_request.h"

namespace shoal::runtime {

// How many threads each loop has.
struct ThreadSplit {
  int decode = 1;
  int codec = 0;  // 0: the language model's thread runs the codec between its steps
  int encode = 1;
};
// device_computes: the threads only feed a device, which is done beside each other whatever their number.
ThreadSplit split_threads(const EngineConfig& config, int available_cpus, bool device_computes = false);

// Bytes for keys and values: kv_memory_mb, or the fraction of what the system has free, but not more than
// max_batch_size sequences of full length can use. At least one page. Throws Error(resource_exhausted) when
// kv_memory_mb is more than is free.
int64_t plan_kv_pages(const EngineConfig& config, const dual_ar::Config& model, DType dtype,
                      int64_t available_bytes);

class Pipeline {
 public:
  // Makes the calls of a model; tests put in calls of their own.
  using MakeCalls = std::function<std::unique_ptr<ModelCalls>(const SpeechModel&)>;

  // Loads the model and takes all memory. Throws Error as loading does; resource_exhausted.
  explicit Pipeline(const EngineConfig& config, const MakeCalls& make_calls = {});
  // Ends what is left with Error(unavailable).
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // As Engine::submit.
  Speech submit(const SpeechRequest& request, QueueEntry entry = {});

  // Speaks a sentence. Throws what that throws.
  void warm_up();
  // Starts encoding the voices that the configuration names, and puts their prefixes into the cache, in the
  // background. What cannot be warmed is logged. Never throws.
  void warm_voices();

  // Refuses new requests.
  void close() { ledger_.close(); }
  bool wait_until_empty(int64_t until_us) { return ledger_.wait_until_empty(until_us); }
  void cancel_all() { decode_loop_->cancel_all(ErrorCode::unavailable, "the engine is stopping"); }

  std::shared_ptr<const ClipCodes> encode(const std::string& audio) { return preparer_->encode(audio); }
  std::vector<float> decode(const std::vector<int32_t>& codes);
  VoiceFolder& voices() { return voices_; }
  const SpeechModel& model() const { return *model_; }
  const std::string& device() const { return device_name_; }
  // Bytes of the GPU in use, by whomever, and in all; both 0 on a CPU.
  struct DeviceMemory {
    int64_t used = 0, total = 0;
  };
  DeviceMemory device_memory() const;
  SelfTest self_test() const;
  int sample_rate_hz() const { return static_cast<int>(model_->codec().config().sample_rate_hz); }
  std::vector<MemoryPart> memory() const;
  Statistics statistics() const;
  // For tests, while no request is open: throws Error(internal) if one has left anything behind.
  void check_idle() const;

 private:
  // Bytes of the device, or of the system, that are free.
  int64_t memory_available() const;
  void watch(const std::shared_ptr<PreparingSpeech>& speech);
  void queue(std::shared_ptr<SpeechJob> job, const PreparingSpeech& prepared);
  void prepared(PreparingSpeech& speech, std::shared_ptr<SpeechJob> job, const std::exception_ptr& error);
  void warm_voice(const std::string& name);

  const EngineConfig config_;
  const Device device_;
  const std::string device_name_;  // asking the driver takes milliseconds
  const int64_t device_memory_bytes_;
  const ThreadSplit split_;
  ThreadTeam decode_team_;
  ThreadTeam codec_team_;
  ops::Execution decode_, codec_;
  std::unique_ptr<const SpeechModel> model_;
  std::unique_ptr<ModelCalls> calls_;
  std::optional<dual_ar::KvCache> cache_;
  std::optional<dac::CodecStatePool> codec_states_;
  VoiceFolder voices_;
  std::optional<CodeStore> store_;
  Ledger ledger_;
  std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();
  std::atomic<JobId> next_id_{1};
  std::optional<CodecLoop> codec_loop_;
  std::optional<DecodeLoop> decode_loop_;
  std::optional<ClipEncoder> encoder_;
  std::optional<Preparer> preparer_;
  std::atomic<bool> exit_{false};
  std::thread warming_;
};

}  // namespace shoal::runtime
