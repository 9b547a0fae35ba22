// Requests that nobody waits for any more, readers that come and go during callbacks, callbacks that throw,
// and engines that stop in the middle of all that.
#include <atomic>
#include <gtest/gtest.h>
#include <thread>

#include "runtime/engine/engine_testing.h"
#include "runtime/engine/push_reader.h"
#include "runtime/engine/speech_state.h"
#include "runtime/families/language/pipeline.h"

namespace shoal::runtime {
namespace {

using std::chrono::milliseconds;
using testing::Answer;
using testing::answer_of;
using testing::code_of;

SpeechRequest brief_request(int64_t frames = 12) { return testing::short_request("A fish.", frames); }

// A clip that takes seconds to encode, another one for each seed.
SpeechRequest request_with_long_clip(uint32_t seed) {
  SpeechRequest request = brief_request();
  request.references = {{.audio = testing::noise_wav(30, seed), .text = "thirty seconds"}};
  return request;
}

// The clips of these requests would take many seconds to encode one after another. Late requests end in time,
// and a clip that nobody waits for is not encoded.
TEST(Preparing, RequestsEndWhileTheirClipsAreEncoded) {
  EngineConfig config = testing::tiny_config();
  config.threads = 1;
  Pipeline pipeline(config);
  std::vector<Speech> before;  // more than are encoded together
  for (uint32_t i = 0; i < 5; ++i) before.push_back(pipeline.submit(request_with_long_clip(i)));
  SpeechRequest hurried = request_with_long_clip(5);
  hurried.timeout = milliseconds(1);
  Speech late = pipeline.submit(hurried);
  EXPECT_EQ(code_of([&] { late.read_all(); }), ErrorCode::deadline_exceeded);
  Speech cancelled = pipeline.submit(request_with_long_clip(6));
  cancelled.cancel();
  EXPECT_EQ(code_of([&] { cancelled.read_all(); }), ErrorCode::cancelled);
  EXPECT_GT(pipeline.statistics().preparing, 0) << "encoding was too fast for this test";
  pipeline.close();
  pipeline.cancel_all();
  pipeline.wait_until_empty(0);
  for (Speech& speech : before) {
    ASSERT_TRUE(speech.ended());
    if (const auto error = speech.error()) {
      EXPECT_EQ(error->code(), ErrorCode::unavailable);
    }
  }
  EXPECT_LE(pipeline.statistics().voices.encoded, 4);
  pipeline.check_idle();
}

TEST(Preparing, TwoRequestsForOneClipEndIndependently) {
  Pipeline pipeline(testing::tiny_config());
  SpeechRequest request = request_with_long_clip(0);
  request.references[0].audio = testing::noise_wav(2, 1);
  Speech cancelled = pipeline.submit(request), kept = pipeline.submit(request);
  cancelled.cancel();
  EXPECT_FALSE(kept.read_all().empty());
  pipeline.wait_until_empty(0);
  EXPECT_EQ(pipeline.statistics().voices.encoded, 1);
  pipeline.check_idle();
}

// A reader that takes everything in the moment in which the engine decides to wait for it must not be waited
// for.
TEST(Readers, APausedSequenceAlwaysResumes) {
  EngineConfig config = testing::tiny_config();
  config.prefetch_s = 0;
  Pipeline pipeline(config);
  Speech whole = pipeline.submit(brief_request(30));
  const Answer expected = answer_of(whole);
  for (int i = 0; i < 8; ++i) {
    Speech speech = pipeline.submit(brief_request(30));
    EXPECT_EQ(answer_of(speech), expected);
  }
}

TEST(Readers, NoCallbackRunsAfterTheHandleIsDestroyed) {
  Pipeline pipeline(testing::tiny_config());
  std::atomic<int> late_calls{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      for (int i = 0; i < 25; ++i) {
        std::atomic<bool> here{true};
        {
          Speech speech = pipeline.submit(brief_request(3));
          speech.on_ready([&] { late_calls += !here; });
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
        }
        here = false;
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(late_calls, 0);
  pipeline.wait_until_empty(0);
  pipeline.check_idle();
}

TEST(Readers, AHandleMayBeDestroyedInItsOwnCallback) {
  Pipeline pipeline(testing::tiny_config());
  for (int i = 0; i < 5; ++i) {
    auto speech = std::make_unique<Speech>(pipeline.submit(brief_request()));
    Speech& handle = *speech;
    handle.on_ready([&] { speech.reset(); });
    pipeline.wait_until_empty(0);
  }
  pipeline.check_idle();
}

TEST(Readers, AHandleMayBeDestroyedWhileItsCallbackIsSet) {
  auto state = std::make_shared<SpeechState>(24'000, 1, std::make_shared<WakeSignal>());
  state->end({}, [](const SpeechSummary&) {});
  auto speech = std::make_unique<Speech>(std::move(state));  // nobody else has the state
  Speech& handle = *speech;
  handle.on_ready([&] { speech.reset(); });  // at once: it has ended
  EXPECT_EQ(speech, nullptr);
}

TEST(Callbacks, TheirExceptionsChangeNothing) {
  Pipeline pipeline(testing::tiny_config());
  Speech quiet = pipeline.submit(brief_request());
  const Answer expected = answer_of(quiet);
  for (int kind = 0; kind < 4; ++kind) {
    const auto complain = [kind] {
      if (kind == 0) throw Error(ErrorCode::io, "the reader's disk is full");
      if (kind == 1) throw std::bad_alloc();
      if (kind == 2) throw 7;
    };
    std::vector<float> sound;
    std::atomic<int> ends{0}, errors{0};
    const Speech pushed = push_to(pipeline.submit(brief_request()),
                                  {.on_audio =
                                       [&](std::span<const float> samples) {
                                         sound.insert(sound.end(), samples.begin(), samples.end());
                                         complain();
                                       },
                                   .on_end =
                                       [&](const auto&, const Error* error) {
                                         errors += error != nullptr;
                                         ++ends;
                                         complain();
                                       }});
    Speech pulled = pipeline.submit(brief_request());
    pulled.on_ready(complain);
    EXPECT_EQ(answer_of(pulled), expected);
    pipeline.wait_until_empty(0);
    while (ends == 0) std::this_thread::yield();  // counted before it is reported
    EXPECT_EQ(sound, expected.sound);
    EXPECT_EQ(errors, 0);
    EXPECT_EQ(ends, 1);
  }
  push_to(pipeline.submit(brief_request()), {});
  pipeline.wait_until_empty(0);
  pipeline.check_idle();
}

TEST(Callbacks, ABatchWhoseCallbackThrowsIsCancelled) {
  Engine engine(testing::tiny_config());
  engine.start();
  const std::vector<SpeechRequest> requests(12, brief_request(40));
  const BatchOptions options{.seed = {},
                             .on_item = [](size_t, const BatchResult&) { throw std::logic_error("no"); }};
  EXPECT_THROW(engine.generate_batch(requests, options), std::logic_error);
  EXPECT_FALSE(engine.submit(brief_request()).read_all().empty());
  engine.stop(milliseconds(10'000));
}

TEST(Stopping, EndsARunningBatch) {
  std::future<std::vector<BatchResult>> batch;
  {
    EngineConfig config = testing::tiny_config();
    config.max_queue = 3;  // most items wait for a place
    Engine engine(config);
    engine.start();
    batch = engine.generate_batch_async(std::vector<SpeechRequest>(40, brief_request(30)));
    while (engine.statistics().completed == 0) std::this_thread::yield();
    engine.stop();
  }
  const std::vector<BatchResult> results = batch.get();
  size_t refused = 0;
  for (const BatchResult& result : results) {
    EXPECT_NE(result.samples.empty(), !result.error.has_value());
    if (!result.error) continue;
    EXPECT_EQ(result.error->code(), ErrorCode::unavailable) << result.error->message();
    ++refused;
  }
  EXPECT_EQ(results.size(), 40u);
  EXPECT_GT(refused, 0u);
}

// Slow callbacks run on the engine's threads while pipelines are exchanged and ended under them.
TEST(Stopping, EveryEndIsReportedOnceDuringReloadsAndStops) {
  constexpr int kRequests = 24;
  std::atomic<int> ends[kRequests] = {};
  std::vector<Speech> speeches;
  Engine engine(testing::tiny_config());
  engine.start();
  std::atomic<bool> over{false};
  std::thread watcher([&] {
    while (!over) {
      const Health health = engine.health();
      EXPECT_GE(health.uptime_s, 0);
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  for (int i = 0; i < kRequests; ++i) {
    if (i == kRequests / 3) engine.reload();
    speeches.push_back(engine.submit(
        brief_request(i < 2 ? 0 : 20),
        {.on_audio = [](std::span<const float>) { std::this_thread::sleep_for(milliseconds(1)); },
         .on_end = [&ends, i](const SpeechSummary&, const Error*) { ++ends[i]; }}));
  }
  engine.stop(milliseconds(50));
  over = true;
  watcher.join();
  EXPECT_EQ(engine.health().state, EngineState::stopped);
  for (const std::atomic<int>& count : ends) EXPECT_EQ(count, 1);
}

TEST(Stopping, AcceptsGraceAndTimeoutsOfAnyLength) {
  Engine engine(testing::tiny_config());
  engine.start();
  SpeechRequest patient = brief_request();
  patient.timeout = milliseconds::max();
  Speech speech = engine.submit(patient);
  engine.stop(milliseconds::max());
  EXPECT_FALSE(speech.read_all().empty());
}

}  // namespace
}  // namespace shoal::runtime
