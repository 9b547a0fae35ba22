// A Kokoro pipeline whose calls of the network are watched, held and made to fail.
#pragma once

#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include "models/kokoro/small_config_testing.h"
#include "runtime/families/kokoro/kokoro_pipeline.h"
#include "runtime/families/kokoro/kokoro_testing.h"

namespace shoal::runtime::testing {

using Ids = std::vector<int32_t>;

// Calls that first report themselves and may throw.
struct Watch {
  std::function<void(std::span<const kokoro::Utterance>)> on_call = [](auto) {};
  std::mutex mutex;
  std::vector<std::vector<Ids>> batches;
};

class WatchedCalls : public KokoroCalls {
 public:
  WatchedCalls(const KokoroModel& model, ops::Context& ctx, Watch& watch)
      : KokoroCalls(model.network(), ctx), watch_(watch) {}
  std::vector<kokoro::Spoken> speak(std::span<const kokoro::Utterance> batch,
                                    const kokoro::BetweenStages* between) override {
    std::vector<Ids> ids;
    for (const kokoro::Utterance& one : batch) ids.emplace_back(one.ids.begin(), one.ids.end());
    {
      const std::lock_guard lock(watch_.mutex);
      watch_.batches.push_back(std::move(ids));
    }
    watch_.on_call(batch);
    return KokoroCalls::speak(batch, between);
  }

 private:
  Watch& watch_;
};

// Of the model below.
inline EngineConfig small_engine() {
  EngineConfig config;
  config.device = ops::test_device_name();
  config.precision = Precision::float32;
  config.threads = 1;
  config.request_timeout_s = 0;
  config.max_batch_size = 4;
  config.max_batch_frames = 100'000;
  config.first_chunk_words = 1;
  config.phonemizer = "/nonexistent";
  return config;
}

// Random weights of a few kilobytes: phonemes a, b, ɡ and space.
inline std::unique_ptr<const KokoroModel> small_model(const EngineConfig&, ops::Context& ctx) {
  return KokoroModel::random(kokoro::small_config(), Precision::float32, ctx);
}

// That model behind watched calls.
class KokoroPipelineTest : public ::testing::Test {
 protected:
  static EngineConfig small() { return small_engine(); }
  KokoroPipeline& start(const EngineConfig& config = small()) {
    pipeline_.emplace(config, small_model, [this](const KokoroModel& model, ops::Context& ctx) {
      return std::make_unique<WatchedCalls>(model, ctx, watch_);
    });
    return *pipeline_;
  }
  static SpeechRequest say(std::string phonemes) {
    SpeechRequest request;
    request.phonemes = std::move(phonemes);
    request.seed = 5;
    return request;
  }

  Watch watch_;
  std::optional<KokoroPipeline> pipeline_;  // goes first
};

// The first call waits until go_on().
class HeldCall {
 public:
  explicit HeldCall(Watch& watch) {
    watch.on_call = [this](auto) {
      if (std::exchange(held_, true)) return;
      called_.release();
      EXPECT_TRUE(go_on_.try_acquire_for(std::chrono::minutes(1)));
    };
  }
  bool has_begun() { return called_.try_acquire_for(std::chrono::minutes(1)); }
  void go_on() { go_on_.release(); }

 private:
  std::binary_semaphore called_{0}, go_on_{0};
  bool held_ = false;  // of the loop's thread
};

}  // namespace shoal::runtime::testing
