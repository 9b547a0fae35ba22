#pragma once

#include <memory>
#include <mutex>

#include "capi/handle.h"
#include "capi/running_threads.h"
#include "shoal/engine.h"
#include "shoal/shoal.h"

namespace shoal::capi {

// An engine that is counted while its threads may run. Batches and voices hold it too.
class SharedEngine : public std::enable_shared_from_this<SharedEngine> {
 public:
  explicit SharedEngine(EngineConfig config) : engine_(std::move(config)) {}
  ~SharedEngine() { stop(0); }
  Engine& engine() { return engine_; }

  void start();
  void stop(int64_t grace_ms);  // negative: as long as it takes

 private:
  Engine engine_;
  std::mutex mutex_;
  std::unique_ptr<RunningThreads> threads_;  // from a start to the next stop
};

}  // namespace shoal::capi

struct shoal_engine : shoal::capi::Handle {
  static constexpr auto kKind = shoal::capi::Kind::engine;
  explicit shoal_engine(shoal::EngineConfig config)
      : Handle(kKind), shared(std::make_shared<shoal::capi::SharedEngine>(std::move(config))) {}
  const std::shared_ptr<shoal::capi::SharedEngine> shared;
};

namespace shoal::capi {

inline Engine& engine_of(const shoal_engine* engine) { return held(engine, "engine").shared->engine(); }

}  // namespace shoal::capi
