// A Kokoro model with everything that makes it speak for many: readers of texts, the batch loop, the queue.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_team.h"
#include "ops/execution.h"
#include "runtime/engine/speech_pipeline.h"
#include "runtime/families/kokoro/batch_loop.h"
#include "runtime/families/kokoro/kokoro_model.h"
#include "runtime/families/kokoro/text_reader.h"

namespace shoal::runtime {

class KokoroPipeline final : public SpeechPipeline {
 public:
  // Make the model and its calls; tests put in their own.
  using MakeModel = std::function<std::unique_ptr<const KokoroModel>(const EngineConfig&, ops::Context&)>;
  using MakeCalls = std::function<std::unique_ptr<KokoroCalls>(const KokoroModel&, ops::Context&)>;

  // Loads the model. Throws Error as loading does, and as phonemes::FrontEnd for dictionaries;
  // invalid_argument, not_found (default_voice, default_language); resource_exhausted (kokoro_memory.h).
  explicit KokoroPipeline(const EngineConfig& config, const MakeModel& make_model = {},
                          const MakeCalls& make_calls = {});
  ~KokoroPipeline() override;

  using SpeechPipeline::submit;
  Speech submit(const SpeechRequest& request, QueueEntry entry) override;
  // Phonemes of the model's vocabulary: no text, so that no espeak-ng is needed.
  void warm_up() override;
  void warm_voices() override {}  // they are read in a millisecond

  void close() override { ledger_.close(); }
  bool wait_until_empty(int64_t until_us) override { return ledger_.wait_until_empty(until_us); }
  void cancel_all() override { loop_->cancel_all(); }

  ModelTraits traits() const override { return kokoro_traits(); }
  int sample_rate_hz() const override { return static_cast<int>(model_->network().sample_rate_hz()); }
  std::string model_name() const override { return model_->name(); }
  FormatNames formats() const override { return names_of(model_->precision()); }
  const std::string& device() const override { return device_name_; }
  DeviceMemory device_memory() const override;
  std::vector<MemoryPart> memory() const override;
  Statistics statistics() const override { return ledger_.statistics(); }
  SelfTest self_test() const override;

  Phonemized phonemize(const std::string& text, const std::string& language, bool normalise) override;
  std::vector<float> voice_styles(const std::string& voice) const override;
  const Voices* own_voices() const override { return &*model_; }

 private:
  void check_defaults() const;
  // Allocates the memory of the largest batch at once: memory that grows in steps takes half as much again.
  void reserve_workspace();
  std::shared_ptr<KokoroJob> make_job(const SpeechRequest& request, uint64_t client) const;
  Speech say_nothing(const SpeechRequest& request, uint64_t client, const QueueEntry& entry,
                     std::vector<std::string> remarks);
  // Its clocks start when it has its place in the queue.
  void start_clocks(KokoroJob& job, const SpeechRequest& request) const;

  const EngineConfig config_;
  const Device device_;
  const std::string device_name_;
  ThreadTeam team_;
  ops::Execution execution_;
  const int64_t memory_available_;  // before the model was loaded
  std::unique_ptr<const KokoroModel> model_;
  std::unique_ptr<KokoroCalls> calls_;
  phonemes::FrontEnd front_end_;
  Ledger ledger_;
  std::shared_ptr<WakeSignal> wake_ = std::make_shared<WakeSignal>();
  mutable std::atomic<uint64_t> next_id_{1};
  std::optional<BatchLoop> loop_;
  std::optional<TextReader> reader_;
};

}  // namespace shoal::runtime
