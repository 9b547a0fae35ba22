#include "shoal/engine.h"

#include <mutex>
#include <optional>
#include <system_error>

#include "base/clock.h"
#include "base/function_ref.h"
#include "ops/device_check.h"
#include "runtime/engine/batch.h"
#include "runtime/engine/engine_voices.h"
#include "runtime/engine/family.h"
#include "runtime/engine/push_reader.h"
#include "runtime/engine/speech_pipeline.h"
#include "runtime/engine/system_memory.h"

namespace shoal {

using runtime::QueueEntry;
using Pipeline = runtime::SpeechPipeline;

// The serving pipeline and the previous ones that still have requests. A caller holds the pipeline that it
// uses, so that a hand-over waits for nobody.
class Engine::Impl {
 public:
  explicit Impl(EngineConfig config)
      : config_(std::move(config)),
        voices_(config_.references_dir, [this] { return current_unless_unloaded(); }) {
    config_.validate();
  }
  void start() {
    const std::lock_guard changing(lifecycle_);
    if (current()) fail(ErrorCode::invalid_argument, "engine: it has been started");
    const bool again = begin_start();
    try {
      install(config_);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      state_ = again ? EngineState::unloaded : EngineState::stopped;
      wanted_ = false;
      throw;
    }
    const std::lock_guard lock(mutex_);
    started_us_ = last_used_us_ = now_us();
    last_load_s_ = seconds_since(load_began_us_);
  }

  bool unload(std::chrono::milliseconds unused_for) {
    const std::unique_lock changing(lifecycle_, std::try_to_lock);
    if (!changing) return false;
    std::shared_ptr<Pipeline> last = take_unused(unused_for);
    if (!last) return false;
    // A request that found it a moment ago ends on it.
    retire(last);
    last.reset();
    for (Retiring& earlier : retiring_) earlier.freed.wait();
    retiring_.clear();
    return true;
  }

  bool is_wanted() const {
    const std::lock_guard lock(mutex_);
    return state_ == EngineState::loading || (state_ == EngineState::unloaded && wanted_);
  }

  void end_hold() {
    const std::lock_guard lock(mutex_);
    --holds_;
    last_used_us_ = now_us();
  }

  void begin_hold() {
    const std::lock_guard lock(mutex_);
    if (!pipeline_) fail_unavailable();
    ++holds_;
  }

  // Or a call would be told that the model is being loaded again.
  bool has_model() const {
    const std::lock_guard lock(mutex_);
    return pipeline_ || is_away_now();
  }

  // Asking for them is no use of the model.
  ModelTraits traits() const {
    const std::lock_guard lock(mutex_);
    if (pipeline_) return pipeline_->traits();
    if (is_away_now()) return *traits_;
    fail_unavailable();
  }

  void reload(const EngineConfig& config) {
    config.validate();
    if (config.references_dir != voices_.dir())
      fail(ErrorCode::invalid_argument, "references_dir: it cannot change while the engine runs");
    const std::lock_guard changing(lifecycle_);
    const EngineState before = state();
    if (!current() && before != EngineState::unloaded)
      fail(ErrorCode::unavailable, "engine: it is not running, so there is nothing to reload");
    set_state(before == EngineState::unloaded ? EngineState::loading : EngineState::reloading);
    try {
      install(config);
    } catch (...) {
      set_state(before == EngineState::unloaded ? before : EngineState::ready);
      throw;
    }
  }

  void stop(std::chrono::milliseconds grace) {
    if (grace.count() <= 0) cut_short();
    const std::lock_guard changing(lifecycle_);
    const std::shared_ptr<Pipeline> last = current();
    if (last) {
      set_state(EngineState::stopping);
      last->close();
    }
    const int64_t until = now_us() + std::min(grace.count(), kLongestGraceMs) * 1000;
    for_each_open(last, [&](Pipeline& pipeline) { pipeline.wait_until_empty(until); });
    for_each_open(last, [](Pipeline& pipeline) { pipeline.cancel_all(); });
    {
      const std::lock_guard lock(mutex_);
      pipeline_.reset();
    }
    retire(last);
    for (Retiring& earlier : retiring_) earlier.freed.wait();
    retiring_.clear();
    set_state(EngineState::stopped);
  }

  // Ends the grace that another thread's stop() gives.
  void cut_short() {
    const std::shared_ptr<Pipeline> pipeline = current();
    if (!pipeline) return;
    pipeline->close();
    pipeline->cancel_all();
  }

  std::shared_ptr<Pipeline> serving() const {
    const std::lock_guard lock(mutex_);
    if (!pipeline_) fail_unavailable();
    last_used_us_ = now_us();
    return pipeline_;
  }

  // A request that meets a pipeline in the moment of its hand-over goes to the next one.
  Speech submit(const SpeechRequest& request, QueueEntry entry) {
    std::shared_ptr<Pipeline> pipeline = serving();
    while (true) {
      try {
        return pipeline->submit(request, entry);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::unavailable) throw;
        std::shared_ptr<Pipeline> next = current_unless_unloaded();
        if (!next || next == pipeline) throw;
        pipeline = std::move(next);
      }
    }
  }

  std::vector<BatchResult> speak_batch(std::vector<SpeechRequest> requests, const BatchOptions& options) {
    const auto submit_item = [&](const SpeechRequest& request, std::function<void()> meanwhile) {
      return submit(request, {.wait = true, .cancel = options.cancel, .meanwhile = std::move(meanwhile)});
    };
    return runtime::speak_batch(submit_item, std::move(requests), options);
  }

  Health health() const {
    Health health;
    health.resident_bytes = runtime::resident_memory();
    health.gpu_available = ops::gpu_available();
    const std::shared_ptr<Pipeline> pipeline = current();
    const std::lock_guard lock(mutex_);
    health.state = state_;
    health.last_load_s = last_load_s_;
    if (state_ == EngineState::loading) health.loading_s = seconds_since(load_began_us_);
    if (is_away_now()) health.model = unloaded_name_;
    if (!pipeline) return health;
    health.model = pipeline->model_name();
    health.formats = pipeline->formats();
    health.device = pipeline->device();
    health.uptime_s = static_cast<double>(now_us() - started_us_) * 1e-6;
    health.memory = pipeline->memory();
    const Pipeline::DeviceMemory device = pipeline->device_memory();
    health.device_used_bytes = device.used;
    health.device_total_bytes = device.total;
    health.statistics = pipeline->statistics();
    return health;
  }

  EngineConfig config() const {
    const std::lock_guard lock(mutex_);
    return config_;
  }
  Voices& voices() { return voices_; }

 private:
  std::shared_ptr<Pipeline> current() const {
    const std::lock_guard lock(mutex_);
    return pipeline_;
  }

  // The same, but a model that is not in memory is wanted, and that is an error.
  std::shared_ptr<Pipeline> current_unless_unloaded() const {
    const std::lock_guard lock(mutex_);
    if (is_away_now()) fail_unavailable();
    return pipeline_;
  }

  bool is_away_now() const { return state_ == EngineState::unloaded || state_ == EngineState::loading; }

  // Under mutex_, as the one before.
  [[noreturn]] void fail_unavailable() const {
    if (is_away_now()) wanted_ = true;
    fail(ErrorCode::unavailable, is_away_now()
                                     ? "the model had been unloaded; try again while it is being loaded"
                                     : "the engine is not running");
  }

  // Whether the model is loaded again.
  bool begin_start() {
    const std::lock_guard lock(mutex_);
    const bool again = state_ == EngineState::unloaded;
    state_ = again ? EngineState::loading : EngineState::starting;
    load_began_us_ = now_us();
    return again;
  }

  // The serving pipeline, if nobody uses it, which from then on serves no more.
  std::shared_ptr<Pipeline> take_unused(std::chrono::milliseconds unused_for) {
    const std::lock_guard lock(mutex_);
    if (!pipeline_ || holds_ > 0 || state_ != EngineState::ready) return nullptr;
    const Statistics now = pipeline_->statistics();
    const int64_t inside = now.preparing + now.waiting + now.running + now.paused + now.finishing;
    if (inside > 0) last_used_us_ = now_us();
    if (inside > 0 || now_us() - last_used_us_ < unused_for.count() * 1000) return nullptr;
    traits_ = pipeline_->traits();
    unloaded_name_ = pipeline_->model_name();
    state_ = EngineState::unloaded;
    wanted_ = false;
    return std::exchange(pipeline_, nullptr);
  }

  EngineState state() const {
    const std::lock_guard lock(mutex_);
    return state_;
  }

  void set_state(EngineState state) {
    const std::lock_guard lock(mutex_);
    state_ = state;
  }

  static double seconds_since(int64_t begin_us) { return static_cast<double>(now_us() - begin_us) * 1e-6; }

  static std::shared_ptr<Pipeline> make_pipeline(const EngineConfig& config) {
    try {
      return runtime::family_of(config.model).load(config);
    } catch (const std::system_error& error) {
      fail(ErrorCode::resource_exhausted, "the engine's threads could not be started: ", error.what());
    } catch (const std::bad_alloc&) {
      fail(ErrorCode::resource_exhausted, "memory ran out while the model was made ready");
    }
  }

  // Makes a pipeline ready and hands over to it.
  void install(const EngineConfig& config) {
    auto next = make_pipeline(config);
    if (config.warm_up) next->warm_up();
    std::shared_ptr<Pipeline> previous;
    {
      const std::lock_guard lock(mutex_);
      previous = std::exchange(pipeline_, next);
      config_ = config;
      state_ = EngineState::ready;
    }
    next->warm_voices();
    retire(previous);
  }

  // The serving pipeline, and earlier ones that still have requests.
  void for_each_open(const std::shared_ptr<Pipeline>& serving, FunctionRef<void(Pipeline&)> act) {
    if (serving) act(*serving);
    for (const Retiring& earlier : retiring_)
      if (const auto pipeline = earlier.pipeline.lock()) act(*pipeline);
  }

  // Lets the requests of a pipeline end, then frees it, in the background.
  void retire(const std::shared_ptr<Pipeline>& pipeline) {
    if (!pipeline) return;
    pipeline->close();
    std::erase_if(retiring_, [](Retiring& earlier) {
      return earlier.freed.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    });
    try {
      retiring_.push_back(
          {.pipeline = pipeline, .freed = std::async(std::launch::async, [last = pipeline]() mutable {
                                   last->wait_until_empty(0);
                                   last.reset();
                                 })});
    } catch (const std::exception&) {  // no thread for it
      pipeline->wait_until_empty(0);
    }
  }

  static constexpr int64_t kLongestGraceMs = int64_t{1} << 40;

  EngineConfig config_;
  runtime::EngineVoices voices_;
  std::mutex lifecycle_;      // one start, reload or stop at a time
  mutable std::mutex mutex_;  // guards config_ and what follows, to started_us_
  mutable int64_t last_used_us_ = now_us();
  mutable bool wanted_ = false;  // since it was unloaded
  int holds_ = 0;
  int64_t load_began_us_ = 0;
  double last_load_s_ = 0;
  std::optional<ModelTraits> traits_;  // of the model that was unloaded, as the next
  std::string unloaded_name_;
  std::shared_ptr<Pipeline> pipeline_;
  EngineState state_ = EngineState::stopped;
  int64_t started_us_ = 0;
  struct Retiring {
    std::weak_ptr<Pipeline> pipeline;
    std::future<void> freed;
  };
  std::vector<Retiring> retiring_;  // under lifecycle_
};

Engine::Engine(EngineConfig config) : impl_(std::make_shared<Impl>(std::move(config))) {}
Engine::~Engine() { impl_->stop(std::chrono::milliseconds{0}); }

void Engine::start() { impl_->start(); }
bool Engine::unload(std::chrono::milliseconds unused_for) { return impl_->unload(unused_for); }
bool Engine::is_wanted() const { return impl_->is_wanted(); }

std::shared_ptr<void> Engine::hold() {
  impl_->begin_hold();
  return {nullptr, [impl = impl_](void*) { impl->end_hold(); }};
}

void Engine::stop(std::chrono::milliseconds grace) { impl_->stop(grace); }
void Engine::reload() { impl_->reload(impl_->config()); }
void Engine::reload(EngineConfig config) { impl_->reload(config); }

Speech Engine::submit(SpeechRequest request) { return impl_->submit(request, {}); }

Speech Engine::submit(SpeechRequest request, SpeechCallbacks callbacks) {
  return runtime::push_to(impl_->submit(request, {}), std::move(callbacks));
}

std::vector<BatchResult> Engine::generate_batch(std::vector<SpeechRequest> requests, BatchOptions options) {
  return impl_->speak_batch(std::move(requests), options);
}

std::future<std::vector<BatchResult>> Engine::generate_batch_async(std::vector<SpeechRequest> requests,
                                                                   BatchOptions options) {
  std::shared_ptr<void> held;
  if (impl_->has_model()) held = hold();
  return std::async(std::launch::async, [impl = impl_, held = std::move(held), requests = std::move(requests),
                                         options = std::move(options)]() mutable {
    return impl->speak_batch(std::move(requests), options);
  });
}

EncodedClip Engine::encode(const std::string& audio) { return impl_->serving()->encode(audio); }
std::vector<float> Engine::decode(const std::vector<int32_t>& codes) {
  return impl_->serving()->decode(codes);
}
CodecShape Engine::codec_shape() const { return impl_->serving()->codec_shape(); }

ModelTraits Engine::traits() const { return impl_->traits(); }
Phonemized Engine::phonemize(const std::string& text, const std::string& language, bool normalise) const {
  return impl_->serving()->phonemize(text, language, normalise);
}
std::vector<float> Engine::voice_styles(const std::string& voice) const {
  return impl_->serving()->voice_styles(voice);
}

Voices& Engine::voices() { return impl_->voices(); }
Health Engine::health() const { return impl_->health(); }
SelfTest Engine::self_test() const { return impl_->serving()->self_test(); }
Statistics Engine::statistics() const { return impl_->serving()->statistics(); }
EngineConfig Engine::config() const { return impl_->config(); }
int Engine::sample_rate_hz() const { return impl_->serving()->sample_rate_hz(); }

}  // namespace shoal
