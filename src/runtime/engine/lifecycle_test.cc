// The public API: starting, stopping, reloading and unloading.
#include <atomic>
#include <gtest/gtest.h>
#include <thread>

#include "base/eventually_testing.h"
#include "runtime/engine/engine_testing.h"
#include "shoal/engine.h"

namespace shoal {
namespace {

using runtime::testing::Answer;
using runtime::testing::answer_of;
using runtime::testing::code_of;
using runtime::testing::endless_request;
using runtime::testing::short_request;
using runtime::testing::tiny_config;
using std::chrono::milliseconds;

TEST(Engine, RefusesBadConfigurationsBeforeAnythingIsLoaded) {
  EngineConfig config = tiny_config();
  config.max_batch_size = 0;
  EXPECT_EQ(code_of([&] { Engine engine(config); }), ErrorCode::invalid_argument);
  config = tiny_config();
  config.device = "cuda:99";
  Engine engine(config);
  const ErrorCode refused = code_of([&] { engine.start(); });
  EXPECT_TRUE(refused == ErrorCode::unsupported || refused == ErrorCode::unavailable) << name_of(refused);
  EXPECT_EQ(engine.health().state, EngineState::stopped);
}

TEST(Engine, AcceptsRequestsOnlyWhileItRuns) {
  Engine engine(tiny_config());
  EXPECT_EQ(code_of([&] { engine.submit(short_request()); }), ErrorCode::unavailable);
  engine.start();
  EXPECT_EQ(engine.health().state, EngineState::ready);
  EXPECT_FALSE(engine.submit(short_request()).read_all().empty());
  engine.stop();
  EXPECT_EQ(engine.health().state, EngineState::stopped);
  EXPECT_EQ(code_of([&] { engine.submit(short_request()); }), ErrorCode::unavailable);
  engine.start();
  EXPECT_FALSE(engine.submit(short_request()).read_all().empty());
}

TEST(Engine, StopLetsRequestsEndWithinTheGraceAndCancelsTheRest) {
  Engine engine(tiny_config());
  engine.start();
  Speech quick = engine.submit(short_request());
  engine.stop(milliseconds(60'000));
  EXPECT_FALSE(quick.read_all().empty());
  engine.start();
  Speech endless = engine.submit(endless_request());
  engine.stop(milliseconds(1));
  EXPECT_EQ(code_of([&] { endless.read_all(); }), ErrorCode::unavailable);
}

TEST(Engine, ReloadHandsOverWithoutDroppingARequest) {
  Engine engine(tiny_config());
  engine.start();
  Speech first = engine.submit(short_request());
  const Answer before = answer_of(first);
  Speech running = engine.submit(short_request("A fish.", 400));
  EngineConfig other = engine.config();
  other.max_batch_size = 3;
  engine.reload(other);
  EXPECT_EQ(engine.config().max_batch_size, 3);
  Speech second = engine.submit(short_request());
  EXPECT_EQ(answer_of(second), before);
  EXPECT_FALSE(running.read_all().empty());

  other.model = "/nowhere";
  EXPECT_EQ(code_of([&] { engine.reload(other); }), ErrorCode::not_found);
  EXPECT_EQ(engine.health().state, EngineState::ready);
  Speech third = engine.submit(short_request());
  EXPECT_EQ(answer_of(third), before);
}

TEST(Engine, UnloadsOnlyAModelThatNobodyUses) {
  Engine engine(tiny_config());
  EXPECT_FALSE(engine.unload(milliseconds(0)));
  EXPECT_EQ(code_of([&] { engine.hold(); }), ErrorCode::unavailable);
  EXPECT_FALSE(engine.is_wanted());
  engine.start();
  Speech first = engine.submit(short_request());
  const Answer before = answer_of(first);
  EXPECT_FALSE(engine.unload(milliseconds(60'000)));
  Speech running = engine.submit(endless_request());
  EXPECT_FALSE(engine.unload(milliseconds(0)));
  running.cancel();
  EXPECT_EQ(code_of([&] { running.read_all(); }), ErrorCode::cancelled);
  {
    const std::shared_ptr<void> held = engine.hold();
    EXPECT_FALSE(engine.unload(milliseconds(0)));
  }
  EXPECT_TRUE(eventually([&] { return engine.unload(milliseconds(0)); }));
  EXPECT_EQ(engine.health().state, EngineState::unloaded);
  EXPECT_TRUE(engine.health().memory.empty());
  EXPECT_FALSE(engine.traits().family.empty());
  EXPECT_FALSE(engine.is_wanted());

  EXPECT_EQ(code_of([&] { engine.submit(short_request()); }), ErrorCode::unavailable);
  EXPECT_TRUE(engine.is_wanted());
  engine.start();
  EXPECT_FALSE(engine.is_wanted());
  EXPECT_GT(engine.health().last_load_s, 0);
  Speech second = engine.submit(short_request());
  EXPECT_EQ(answer_of(second), before);

  EXPECT_TRUE(eventually([&] { return engine.unload(milliseconds(0)); }));
  engine.reload();
  EXPECT_EQ(engine.health().state, EngineState::ready);
  EXPECT_TRUE(eventually([&] { return engine.unload(milliseconds(0)); }));
  engine.stop();
  EXPECT_EQ(engine.health().state, EngineState::stopped);
  EXPECT_FALSE(engine.unload(milliseconds(0)));
}

TEST(Engine, ARequestMeetsAModelOrLearnsThatItIsAwayWhileItIsUnloaded) {
  Engine engine(tiny_config());
  engine.start();
  std::atomic<bool> over{false};
  std::thread keeper([&] {
    while (!over)
      if (engine.unload(milliseconds(0)) || engine.is_wanted()) engine.start();
  });
  int spoken = 0, away = 0;
  for (int i = 0; i < 60; ++i) {
    try {
      Speech speech = engine.submit(short_request("A fish.", 2));
      EXPECT_FALSE(speech.read_all().empty());
      ++spoken;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unavailable) << error.message();
      ++away;
    }
  }
  over = true;
  keeper.join();
  EXPECT_GT(spoken + away, 0);
  EXPECT_EQ(spoken + away, 60);
}

TEST(Engine, SelfTestPassesOnAWorkingDevice) {
  Engine engine(tiny_config());
  EXPECT_EQ(code_of([&] { engine.self_test(); }), ErrorCode::unavailable);
  engine.start();
  const SelfTest result = engine.self_test();
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.device, engine.health().device);
  EXPECT_EQ(result.gpu_memory_bytes > 0, result.device != "cpu");
  EXPECT_EQ(engine.health().device_total_bytes > 0, result.device != "cpu");
}

TEST(Engine, ManyThreadsSubmitWhileItReloads) {
  Engine engine(tiny_config());
  engine.start();
  Speech first = engine.submit(short_request());
  const Answer expected = answer_of(first);
  std::atomic<int> equal{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        Speech speech = engine.submit(short_request());
        equal += answer_of(speech) == expected;
      }
    });
  }
  for (int i = 0; i < 3; ++i) engine.reload();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal.load(), 40);
}

}  // namespace
}  // namespace shoal
