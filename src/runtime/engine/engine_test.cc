// The public API: queue, deadlines, cancelling, callbacks, slow readers.
#include "shoal/engine.h"

#include <condition_variable>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mutex>
#include <utility>

#include "base/eventually_testing.h"
#include "runtime/engine/engine_testing.h"

namespace shoal {
namespace {

using runtime::testing::Answer;
using runtime::testing::answer_of;
using runtime::testing::code_of;
using runtime::testing::endless_request;
using runtime::testing::short_request;
using runtime::testing::tiny_config;
using std::chrono::milliseconds;

TEST(Engine, AFullQueueRefusesAtOnce) {
  EngineConfig config = tiny_config();
  config.max_batch_size = config.max_streams = 1;
  config.max_queue = 2;
  Engine engine(config);
  engine.start();
  Speech running = engine.submit(endless_request());
  ASSERT_TRUE(eventually([&] { return engine.statistics().running == 1; }));
  Speech one = engine.submit(short_request()), two = engine.submit(short_request());
  EXPECT_EQ(code_of([&] { engine.submit(short_request()); }), ErrorCode::resource_exhausted);
  running.cancel();
  EXPECT_FALSE(one.read_all().empty());
  EXPECT_FALSE(two.read_all().empty());
  const Statistics statistics = engine.statistics();
  EXPECT_EQ(statistics.refused, 1u);
  EXPECT_EQ(statistics.cancelled, 1u);
  EXPECT_EQ(statistics.completed, 2u);
}

TEST(Engine, OneClientCannotFillTheQueueForOthers) {
  EngineConfig config = tiny_config();
  config.max_batch_size = config.max_streams = 1;
  config.max_queue = 8;
  Engine engine(config);
  engine.start();
  const auto of = [](const char* client) {
    SpeechRequest request = endless_request();
    request.client = client;
    return request;
  };
  std::vector<Speech> speeches;
  speeches.push_back(engine.submit(of("other")));  // takes the only place
  ASSERT_TRUE(eventually([&] { return engine.statistics().waiting == 0; }));
  speeches.push_back(engine.submit(of("other")));
  for (int i = 0; i < 4; ++i) speeches.push_back(engine.submit(of("greedy")));
  EXPECT_EQ(code_of([&] { engine.submit(of("greedy")); }), ErrorCode::resource_exhausted);
  for (int i = 0; i < 2; ++i) speeches.push_back(engine.submit(of("other")));  // still finds room
}

TEST(Engine, AssigningOverAHandleCancelsItsRequest) {
  Engine engine(tiny_config());
  engine.start();
  Speech speech = engine.submit(endless_request());
  Speech other = engine.submit(short_request());
  speech = std::move(other);
  EXPECT_TRUE(eventually([&] { return engine.statistics().cancelled == 1; }));
  EXPECT_FALSE(speech.read_all().empty());
}

TEST(Engine, AnUnspeakableTextIsAShortSilence) {
  Engine engine(tiny_config());
  engine.start();
  for (const char* text : {"...", "🎉", " —!? "}) {
    Speech speech = engine.submit(short_request(text));
    const std::vector<float> silence = speech.read_all();
    EXPECT_EQ(silence, std::vector<float>(static_cast<size_t>(speech.sample_rate_hz()) / 5)) << text;
    ASSERT_EQ(speech.summary().warnings.size(), 1u) << text;
    EXPECT_NE(speech.summary().warnings[0].find("nothing in it that can be spoken"), std::string::npos);
    SpeechRequest nobody = short_request(text);
    nobody.voice = "nobody";
    EXPECT_EQ(code_of([&] { engine.submit(nobody).read_all(); }), ErrorCode::not_found);
  }
  EXPECT_EQ(engine.statistics().completed, 3u);
  EXPECT_EQ(engine.statistics().frames, 0u);
  for (const char* blank : {"", " \n\t "})
    EXPECT_EQ(code_of([&] { engine.submit(short_request(blank)); }), ErrorCode::invalid_argument);
}

TEST(Engine, DeadlinesEndWaitingAndSpeakingRequests) {
  EngineConfig config = tiny_config();
  config.max_batch_size = config.max_streams = 1;
  Engine engine(config);
  engine.start();
  SpeechRequest hurried = endless_request();
  hurried.timeout = milliseconds(100);
  // For a stream only the time without sound to hear counts.
  hurried.delivery = Delivery::whole;
  Speech running = engine.submit(hurried);
  Speech waiting = engine.submit(hurried);
  EXPECT_EQ(code_of([&] { running.read_all(); }), ErrorCode::deadline_exceeded);
  EXPECT_EQ(code_of([&] { waiting.read_all(); }), ErrorCode::deadline_exceeded);
  EXPECT_EQ(engine.statistics().expired, 2u);
}

TEST(Engine, ADroppedHandleCancels) {
  Engine engine(tiny_config());
  engine.start();
  {
    const Speech dropped = engine.submit(endless_request());
  }
  EXPECT_TRUE(eventually([&] { return engine.statistics().cancelled == 1; }));
  EXPECT_TRUE(eventually([&] { return engine.statistics().kv.pages_used == 0; }));
}

TEST(Engine, ASlowReaderPausesOnlyItself) {
  EngineConfig config = tiny_config();
  config.prefetch_s = 1;
  config.max_batch_size = 1;
  Engine engine(config);
  engine.start();
  Speech slow = engine.submit(short_request("A slow fish.", 600));  // it would end by itself after 171 frames
  ASSERT_TRUE(eventually([&] { return engine.statistics().paused == 1; }));
  const int64_t made = slow.progress().frames;
  EXPECT_FALSE(engine.submit(short_request()).read_all().empty());  // the only place of the batch is free
  EXPECT_EQ(slow.progress().frames, made);
  slow.read_all();
  EXPECT_GT(slow.summary().frames, made + 20);
}

TEST(Engine, CallbacksGetTheSameSoundAndOneEnd) {
  Engine engine(tiny_config());
  engine.start();
  Speech pulled = engine.submit(short_request("A fish.", 40));
  const Answer expected = answer_of(pulled);
  struct Received {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<float> sound;
    int pieces = 0, ends = 0;
    std::optional<ErrorCode> error;
  };
  const auto listen = [&](Received& received) {
    return SpeechCallbacks{.on_audio =
                               [&](std::span<const float> samples) {
                                 received.sound.insert(received.sound.end(), samples.begin(), samples.end());
                                 ++received.pieces;
                               },
                           .on_end =
                               [&](const SpeechSummary& summary, const Error* error) {
                                 const std::lock_guard lock(received.mutex);
                                 ++received.ends;
                                 if (error) received.error = error->code();
                                 EXPECT_GT(summary.total_s, 0);
                                 received.changed.notify_all();
                               }};
  };
  const auto wait = [](Received& received) {
    std::unique_lock lock(received.mutex);
    received.changed.wait(lock, [&] { return received.ends > 0; });
  };
  Received good, cancelled;
  const Speech speech = engine.submit(short_request("A fish.", 40), listen(good));
  wait(good);
  EXPECT_EQ(good.sound, expected.sound);
  EXPECT_GE(good.pieces, 2);
  EXPECT_FALSE(good.error);
  Speech endless = engine.submit(endless_request(), listen(cancelled));
  endless.cancel();
  wait(cancelled);
  EXPECT_EQ(cancelled.error, ErrorCode::cancelled);
  engine.stop();
  EXPECT_EQ(good.ends, 1);
  EXPECT_EQ(cancelled.ends, 1);
}

TEST(Engine, ReportsTheShapeOfItsCodes) {
  Engine engine(tiny_config());
  EXPECT_EQ(code_of([&] { engine.codec_shape(); }), ErrorCode::unavailable);
  engine.start();
  const CodecShape shape = engine.codec_shape();
  Speech speech = engine.submit(short_request());
  const std::vector<float> sound = speech.read_all();
  const auto frames = static_cast<size_t>(speech.summary().frames);
  EXPECT_EQ(speech.codes().size(), frames * static_cast<size_t>(shape.codebooks));
  EXPECT_EQ(sound.size(), frames * static_cast<size_t>(shape.samples_per_frame));
  EXPECT_GE(shape.semantic_entries, shape.residual_entries);
  for (const int32_t code : speech.codes()) EXPECT_LT(code, shape.semantic_entries);
}

TEST(Engine, RequestsThatCanNeverFitAreRefusedWithNumbers) {
  EngineConfig config = tiny_config();
  config.kv_memory_mb = 1;
  Engine engine(config);
  engine.start();
  try {
    engine.submit(short_request("A fish.", 4000));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::too_large);
    EXPECT_NE(error.message().find("KV pages"), std::string::npos) << error.message();
  }
  EXPECT_EQ(engine.statistics().preparing, 0);
}

TEST(Engine, FieldsThatTheModelIgnoresAreReportedOrRefusedByName) {
  Engine engine(tiny_config());
  engine.start();
  const std::vector<float> usual = engine.submit(short_request()).read_all();
  const std::pair<const char*, std::function<void(SpeechRequest&)>> others[] = {
      {"phonemes: ", [](SpeechRequest& request) { request.phonemes = "həlˈO"; }},
      {"language: ", [](SpeechRequest& request) { request.language = "a"; }},
      {"strict_phonemes: ", [](SpeechRequest& request) { request.strict_phonemes = true; }},
      {"trim_joins: ", [](SpeechRequest& request) { request.trim_joins = false; }},
      {"emotion: ", [](SpeechRequest& request) { request.unused = {"emotion: no model has any"}; }},
  };
  for (const auto& [field, ask] : others) {
    SpeechRequest request = short_request();
    ask(request);
    if (request.phonemes.empty()) {
      Speech speech = engine.submit(request);
      EXPECT_EQ(speech.read_all(), usual);
      EXPECT_THAT(speech.summary().warnings,
                  ::testing::ElementsAre(::testing::StartsWith(concat(field, "has no effect: "))));
    }
    request.strict = true;
    try {
      engine.submit(request);
      ADD_FAILURE() << field << "is taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_TRUE(error.message().starts_with(field)) << error.message();
    }
  }
}

TEST(Engine, UnknownVoicesAndDamagedClipsAreErrorsOfTheirRequest) {
  Engine engine(tiny_config());
  engine.start();
  SpeechRequest request = short_request();
  request.voice = "nobody";
  EXPECT_EQ(code_of([&] { engine.submit(request); }), ErrorCode::not_found);
  request.voice = "../etc";
  EXPECT_EQ(code_of([&] { engine.submit(request); }), ErrorCode::invalid_argument);
  request = short_request();
  request.references.push_back({.audio = "RIFFnot really", .text = "words"});
  Speech speech = engine.submit(request);
  EXPECT_EQ(code_of([&] { speech.read_all(); }), ErrorCode::corrupt_file);
  request.references[0].text = " ";
  EXPECT_EQ(code_of([&] { engine.submit(request); }), ErrorCode::invalid_argument);
  EXPECT_FALSE(engine.submit(short_request()).read_all().empty());
}

}  // namespace
}  // namespace shoal
