// A language model and its codec with everything that makes them speak for many: threads, memory, caches.
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
#include "runtime/engine/model_precision.h"
#include "runtime/engine/speech_pipeline.h"
#include "runtime/families/language/clip_decoder.h"
#include "runtime/families/language/clip_encoder.h"
#include "runtime/families/language/codec_loop.h"
#include "runtime/families/language/decode_loop.h"
#include "runtime/families/language/preparer.h"
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
  int of_codec() const { return codec > 0 ? codec : decode; }
};
// device_computes: the threads only feed a device; both loops can then run side by side with any number of
// threads.
ThreadSplit split_threads(const EngineConfig& config, int available_cpus, bool device_computes = false);

// Bytes for keys and values: kv_memory_mb, or the fraction of the free system memory, but not more than
// max_batch_size sequences of full length can use. At least one page. Throws Error(resource_exhausted) when
// kv_memory_mb exceeds the free memory.
int64_t plan_kv_pages(const EngineConfig& config, const dual_ar::Config& model, DType dtype,
                      int64_t available_bytes);

class Pipeline final : public SpeechPipeline {
 public:
  // Makes the calls of a model; tests put in calls of their own.
  using MakeCalls = std::function<std::unique_ptr<ModelCalls>(const SpeechModel&)>;

  // Loads the model and takes all memory. Throws Error as loading does; resource_exhausted.
  explicit Pipeline(const EngineConfig& config, const MakeCalls& make_calls = {});
  ~Pipeline() override;

  using SpeechPipeline::submit;
  Speech submit(const SpeechRequest& request, QueueEntry entry) override;
  void warm_up() override;
  // Encodes them, and puts their prefixes into the cache. What cannot be warmed is logged.
  void warm_voices() override;

  void close() override { ledger_.close(); }
  bool wait_until_empty(int64_t until_us) override { return ledger_.wait_until_empty(until_us); }
  void cancel_all() override { decode_loop_->cancel_all(ErrorCode::unavailable, "the engine is stopping"); }

  ModelTraits traits() const override;
  int sample_rate_hz() const override { return static_cast<int>(model_->codec().config().sample_rate_hz); }
  std::string model_name() const override { return model_->name(); }
  FormatNames formats() const override { return names_of(model_->formats(), model_->codec().format()); }
  const std::string& device() const override { return device_name_; }
  DeviceMemory device_memory() const override;
  std::vector<MemoryPart> memory() const override;
  Statistics statistics() const override;
  SelfTest self_test() const override;

  EncodedClip encode(const std::string& audio) override;
  std::vector<float> decode(const std::vector<int32_t>& codes) override;
  CodecShape codec_shape() const override;

  NamedVoices& voices() { return voices_; }
  std::string shipped_voices_dir() const override { return voices_.shipped().dir(); }
  const SpeechModel& model() const { return *model_; }
  // For tests, while no request is open: throws Error(internal) if a request has leaked anything.
  void check_idle() const;
  // For tests, while no request is open: steps of both loops that are recorded for replay.
  int64_t recordings() const { return decode_.recordings() + codec_.recordings(); }

 private:
  void watch(const std::shared_ptr<PreparingSpeech>& speech);
  void queue(std::shared_ptr<SpeechJob> job, const PreparingSpeech& prepared);
  void prepared(PreparingSpeech& speech, std::shared_ptr<SpeechJob> job, const std::exception_ptr& error);
  void warm_voice(const std::string& name);
  void check_parts();

  const EngineConfig config_;
  const Device device_;
  const std::string device_name_;  // asking the driver takes milliseconds
  const int64_t device_memory_bytes_;
  const ThreadSplit split_;
  ThreadTeam decode_team_;
  ThreadTeam codec_team_;
  const int codec_part_;  // multiprocessors
  ops::Execution decode_, codec_;
  ClipWork clip_work_;                // of the encoder, and on a GPU of the decoder
  std::optional<ClipWork> cpu_work_;  // of the decoder on a CPU, where it need not wait for clips
  std::unique_ptr<const SpeechModel> model_;
  std::unique_ptr<ModelCalls> calls_;
  std::optional<dual_ar::KvCache> cache_;
  std::optional<dac::CodecStatePool> codec_states_;
  NamedVoices voices_;
  std::optional<CodeStore> store_;
  Ledger ledger_;
  std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();
  std::atomic<JobId> next_id_{1};
  std::optional<CodecLoop> codec_loop_;
  std::optional<DecodeLoop> decode_loop_;
  std::optional<ClipDecoder> decoder_;
  std::optional<ClipEncoder> encoder_;
  std::optional<Preparer> preparer_;
  std::atomic<bool> exit_{false};
  std::thread warming_;
};

}  // namespace shoal::runtime
