// Batches through the public API: order, bad items, limits, cancelling.
#include "runtime/engine/batch.h"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <stdexcept>
#include <thread>

#include "base/eventually_testing.h"
#include "runtime/engine/engine_testing.h"
#include "runtime/engine/ledger.h"
#include "shoal/engine.h"

namespace shoal {
namespace {

using runtime::testing::short_request;
using runtime::testing::tiny_config;
using std::chrono::milliseconds;

TEST(EngineBatch, KeepsItsOrderAndBadItemsFailAlone) {
  EngineConfig config = tiny_config();
  config.max_queue = 2;  // the batch waits for room
  Engine engine(config);
  engine.start();
  std::vector<SpeechRequest> requests;
  for (int i = 0; i < 9; ++i) requests.push_back(short_request("Fish number " + std::to_string(i), 5 + i));
  for (SpeechRequest& request : requests) request.seed.reset();
  requests[4].text = "";
  std::vector<size_t> reported;
  const BatchOptions options{.seed = 77,
                             .on_item = [&](size_t index, const BatchResult&) { reported.push_back(index); }};
  const std::vector<BatchResult> results = engine.generate_batch(requests, options);
  const std::vector<BatchResult> again = engine.generate_batch_async(requests, {.seed = 77}).get();
  ASSERT_EQ(results.size(), 9u);
  std::sort(reported.begin(), reported.end());
  EXPECT_EQ(reported, (std::vector<size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].samples, again[i].samples);
    if (i == 4) {
      ASSERT_TRUE(results[i].error);
      EXPECT_EQ(results[i].error->code(), ErrorCode::invalid_argument);
      continue;
    }
    EXPECT_FALSE(results[i].error);
    EXPECT_LT(results[i].summary.seed, uint64_t{1} << 53);              // as a double can hold
    EXPECT_EQ(results[i].summary.frames, static_cast<int64_t>(4 + i));  // the last frame is dropped
    for (size_t other = 0; other < i; ++other)
      EXPECT_NE(results[i].summary.seed, results[other].summary.seed);
  }
  EXPECT_TRUE(engine.generate_batch({}).empty());
}

TEST(EngineBatch, AnItemThatGrowsTooLongEndsAlone) {
  Engine engine(tiny_config());
  engine.start();
  const std::vector<SpeechRequest> requests = {short_request("A fish.", 8), short_request("A fish.", 400),
                                               short_request("Fish.", 8)};
  const std::vector<BatchResult> whole = engine.generate_batch(requests);
  ASSERT_FALSE(whole[1].error);
  ASSERT_GT(whole[1].summary.audio_s(), 4 * whole[0].summary.audio_s());
  const std::vector<BatchResult> limited =
      engine.generate_batch(requests, {.max_item_s = 2 * whole[0].summary.audio_s()});
  ASSERT_TRUE(limited[1].error);
  EXPECT_EQ(limited[1].error->code(), ErrorCode::too_large);
  EXPECT_TRUE(limited[1].samples.empty());
  for (const size_t i : {0, 2}) EXPECT_EQ(limited[i].samples, whole[i].samples) << i;
  EXPECT_TRUE(eventually([&] { return engine.statistics().running == 0; }));
}

TEST(EngineBatch, RunsNoMoreItemsAtOnceThanAllowed) {
  Engine engine(tiny_config());
  engine.start();
  uint64_t reported = 0;
  const auto check = [&](size_t, const BatchResult&) {
    EXPECT_LE(engine.statistics().submitted, reported + 2);
    ++reported;
  };
  for (const BatchResult& result :
       engine.generate_batch(std::vector<SpeechRequest>(9, short_request("A fish.", 8)),
                             {.on_item = check, .max_in_flight = 2}))
    EXPECT_FALSE(result.error);
  EXPECT_EQ(reported, 9u);
}

TEST(EngineBatch, AnItemWhoseSamplesAreRefusedEndsAlone) {
  Engine engine(tiny_config());
  engine.start();
  std::vector<size_t> counted(3);
  const auto count = [&](size_t index, size_t samples) {
    if (index == 1) fail(ErrorCode::resource_exhausted, "no memory for it");
    counted[index] += samples;
  };
  const std::vector<BatchResult> results = engine.generate_batch(
      std::vector<SpeechRequest>(3, short_request("A fish.", 8)), {.on_samples = count});
  ASSERT_TRUE(results[1].error);
  EXPECT_EQ(results[1].error->code(), ErrorCode::resource_exhausted);
  EXPECT_TRUE(results[1].samples.empty());
  for (const size_t i : {0, 2}) {
    EXPECT_FALSE(results[i].error);
    EXPECT_EQ(counted[i], results[i].samples.size());
    EXPECT_GT(counted[i], 0u);
  }
}

// Otherwise the sound of submitted items would stay unread, and their answers would wait too.
TEST(EngineBatch, ReadsResultsWhileWaitingForASlot) {
  Engine engine(tiny_config());
  engine.start();
  bool first_ended = false;
  const auto submit = [&](const SpeechRequest& request, const std::function<void()>& meanwhile) {
    if (request.text == "Two fishes.") {
      EXPECT_TRUE(eventually([&] { return meanwhile(), first_ended; }));
    }
    return engine.submit(request);
  };
  const BatchOptions options{.on_item = [&](size_t index, BatchResult&) { first_ended |= index == 0; }};
  for (const BatchResult& result :
       runtime::speak_batch(submit, {short_request("A fish.", 8), short_request("Two fishes.", 8)}, options))
    EXPECT_FALSE(result.error);

  runtime::Ledger ledger(/*max_queue=*/1, /*max_waiting_room=*/1);
  ledger.enter(runtime::Stage::preparing, /*client=*/1, {});
  int called = 0;
  const auto leave = [&] {
    if (++called == 2) ledger.abandon(runtime::Stage::preparing, 1);
  };
  ledger.enter(runtime::Stage::preparing, 2, {.wait = true, .meanwhile = leave});
  EXPECT_EQ(called, 2);
}

// Also while it waits for room.
TEST(EngineBatch, ExceptionsOfTheCallbackReachTheCaller) {
  Engine engine(tiny_config());
  engine.start();
  const auto submit = [&](const SpeechRequest& request, const std::function<void()>& meanwhile) {
    if (request.text == "Two fishes.")
      while (true) meanwhile();
    return engine.submit(request);
  };
  const BatchOptions options{.on_item = [](size_t, BatchResult&) { throw std::runtime_error("enough"); }};
  EXPECT_THROW(
      runtime::speak_batch(submit, {short_request("A fish.", 8), short_request("Two fishes.", 8)}, options),
      std::runtime_error);
}

TEST(EngineBatch, ACancelledBatchReturnsItsFinishedItems) {
  EngineConfig config = tiny_config();
  config.max_batch_size = config.max_streams = 2;
  config.max_queue = 2;  // most items wait for a place
  Engine engine(config);
  engine.start();
  std::vector<SpeechRequest> requests(20, short_request("A fish.", 0));
  for (SpeechRequest& request : requests) request.text = std::string(1000, 'a');
  requests[0] = short_request();
  requests[1].text = "";
  std::stop_source cancel;
  std::vector<float> taken;
  std::atomic<bool> first_ended = false;
  const BatchOptions options{.on_item =
                                 [&](size_t index, BatchResult& result) {
                                   if (index != 0) return;
                                   taken = std::move(result.samples);
                                   first_ended = true;
                                 },
                             .cancel = cancel.get_token()};
  auto batch = engine.generate_batch_async(requests, options);
  ASSERT_TRUE(eventually([&] { return first_ended && engine.statistics().running == 2; }));
  cancel.request_stop();
  const std::vector<BatchResult> results = batch.get();
  ASSERT_EQ(results.size(), requests.size());
  EXPECT_FALSE(results[0].error);
  EXPECT_TRUE(results[0].samples.empty());
  Speech alone = engine.submit(short_request());
  EXPECT_EQ(taken, alone.read_all());
  EXPECT_EQ(results[1].error->code(), ErrorCode::invalid_argument);
  for (size_t i = 2; i < results.size(); ++i) {
    ASSERT_TRUE(results[i].error) << i;
    EXPECT_EQ(results[i].error->code(), ErrorCode::cancelled) << i;
  }
  EXPECT_TRUE(eventually([&] { return engine.statistics().kv.pages_used == 0; }));
  EXPECT_EQ(engine.statistics().completed, 2u);

  // One that was cancelled before it began.
  for (const BatchResult& result : engine.generate_batch({short_request()}, {.cancel = cancel.get_token()}))
    EXPECT_EQ(result.error->code(), ErrorCode::cancelled);
}

TEST(EngineBatch, MayRunLongerThanTheDeadlineOfOneRequest) {
  EngineConfig config = tiny_config();
  config.max_batch_size = config.max_streams = 1;
  config.request_timeout_s = 1;
  config.prefetch_s = 1;
  Engine engine(config);
  engine.start();
  SpeechRequest slow = short_request("A slow fish.", 600);
  slow.timeout = std::chrono::hours(1);
  Speech blocker = engine.submit(slow);  // nobody reads it: it holds the only place
  ASSERT_TRUE(eventually([&] { return engine.statistics().paused == 1; }));
  auto batch = engine.generate_batch_async({short_request(), short_request()});
  std::this_thread::sleep_for(milliseconds(1500));
  blocker.read_all();
  for (const BatchResult& result : batch.get()) EXPECT_FALSE(result.error) << result.error->message();
}

}  // namespace
}  // namespace shoal
