#include "server/routes/speech_answer.h"

#include <gtest/gtest.h>
#include <thread>

#include "base/base64.h"
#include "server/routes/speech_testing.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::body_value;
using testing::FakeExchange;
using testing::json_request;
using testing::RouteBench;
using testing::shared_engine;
using testing::sound_of;
using testing::spoken;
using testing::text_at;

std::string long_text(int sentences) {
  std::string text;
  for (int i = 0; i < sentences; ++i) text += "One small fish swims under a cold moon. ";
  return text;
}

Request pcm_request(const std::string& text, int seed, const std::string& fields = "") {
  return json_request("/v1/audio/speech",
                      R"({"model":"tts-1","voice":"default","response_format":"pcm","sample_rate":16000,)"
                      R"("seed":)" +
                          std::to_string(seed) + R"(,"input":")" + text + '"' + testing::with_length(fields));
}

// Whether the engine becomes idle soon.
bool becomes_idle(Engine& engine) {
  for (int i = 0; i < 1000; ++i) {
    const Statistics s = engine.statistics();
    if (s.preparing + s.waiting + s.running + s.paused + s.finishing == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(SpeechAnswer, IsTheSameAloneAndAmongOthers) {
  RouteBench bench(openai_routes, shared_engine());
  std::vector<Request> requests;
  for (int seed = 0; seed < 12; ++seed)
    requests.push_back(pcm_request(long_text(1), seed, seed % 4 == 3 ? R"("stream":false)" : ""));
  const std::vector<Answered> together = bench.ask_all(requests);
  for (int seed = 0; seed < 12; ++seed) {
    const auto sound = sound_of(bench.engine(), spoken(long_text(1), static_cast<uint64_t>(seed)));
    EXPECT_TRUE(together[static_cast<size_t>(seed)].body() == testing::pcm_of(sound)) << seed;
  }
}

TEST(SpeechAnswer, ASlowReaderGetsTheSameSoundAndBlocksNobody) {
  RouteBench bench(openai_routes, shared_engine());
  std::vector<FakeExchange*> exchanges;
  const auto answers = bench.ask_all({pcm_request(long_text(1), 1), pcm_request(long_text(1), 2)},
                                     [&](FakeExchange& exchange) {
                                       exchanges.push_back(&exchange);
                                       // The first reads nothing until the second has everything.
                                       if (exchanges.size() == 1)
                                         exchange.holds = [&] { return !exchanges.back()->answered.whole; };
                                     });
  for (size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(answers[i].body() == testing::pcm_of(sound_of(bench.engine(), spoken(long_text(1), i + 1))));
}

TEST(SpeechAnswer, AClientThatLeavesIsCancelled) {
  RouteBench bench(openai_routes, shared_engine());
  for (const std::string fields : {"", R"("stream_format":"sse")"}) {
    const uint64_t cancelled = bench.engine().statistics().cancelled;
    const Answered answered = bench.ask(pcm_request(long_text(100), 1, fields), [](FakeExchange& exchange) {
      exchange.on_piece = [](FakeExchange& now) {
        if (now.answered.pieces.size() == 2) now.leave();
      };
    });
    EXPECT_EQ(answered.status, 200);
    EXPECT_FALSE(answered.whole);
    EXPECT_EQ(answered.pieces.size(), 2u);
    ASSERT_TRUE(answered.error);
    EXPECT_EQ(answered.error->code(), ErrorCode::cancelled);
    EXPECT_TRUE(becomes_idle(bench.engine()));
    EXPECT_EQ(bench.engine().statistics().cancelled, cancelled + 1);
  }
}

TEST(SpeechAnswer, AClientGoneBeforeTheStartCostsNothing) {
  RouteBench bench(openai_routes, shared_engine());
  for (const std::string fields : {"", R"("stream":false)"}) {
    const Answered answered =
        bench.ask(pcm_request(long_text(100), 1, fields), [](FakeExchange& exchange) { exchange.leave(); });
    EXPECT_EQ(answered.status, 0);
    ASSERT_TRUE(answered.error);
    EXPECT_EQ(answered.error->code(), ErrorCode::cancelled);
    EXPECT_TRUE(becomes_idle(bench.engine()));
  }
}

TEST(SpeechAnswer, ADeadlineIsAnErrorBeforeTheFirstSound) {
  RouteBench bench(openai_routes, shared_engine());
  const Answered whole = bench.ask(pcm_request(long_text(300), 1, R"("timeout":0.05,"stream":false)"));
  EXPECT_EQ(whole.status, 504);
  EXPECT_EQ(text_at(body_value(whole), {"error", "code"}), "deadline_exceeded");
}

TEST(SpeechAnswer, AFailureAfterTheFirstSoundCutsTheAnswer) {
  for (const bool events : {false, true}) {
    RouteBench bench(openai_routes);
    std::thread stopping;
    const auto stop = [&](FakeExchange& exchange) {
      exchange.on_piece = [&](FakeExchange&) {
        if (!stopping.joinable()) stopping = std::thread([&] { bench.engine().stop(); });
      };
    };
    const Answered answered =
        bench.ask(pcm_request(long_text(2000), 1, events ? R"("stream_format":"sse")" : ""), stop);
    ASSERT_TRUE(stopping.joinable());
    stopping.join();
    EXPECT_EQ(answered.status, 200);
    if (!events) {
      EXPECT_FALSE(answered.whole) << "the connection is cut";
      ASSERT_TRUE(answered.error);
      EXPECT_EQ(answered.error->code(), ErrorCode::unavailable);
      continue;
    }
    EXPECT_TRUE(answered.whole);
    const std::string last = answered.pieces.back();
    ASSERT_TRUE(last.starts_with("data: "));
    const Value event = read_json(last.substr(6));
    EXPECT_EQ(text_at(event, {"type"}), "error");
    EXPECT_EQ(text_at(event, {"error", "code"}), "unavailable");
  }
}

// It plays while receiving: its own time does not count. The speaking does, which takes its time on a busy
// machine: the limits grow until it is within one, and the reader is slower than each.
TEST(SpeechAnswer, ASlowReaderGetsEverything) {
  EngineConfig config = testing::built_in_config();
  config.prefetch_s = 1;
  RouteBench bench(openai_routes, {}, config);
  Answered audio;
  for (int limit_s = 2; limit_s <= 128 && !audio.whole; limit_s *= 2) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(limit_s + 1);
    const auto takes_his_time = [end](FakeExchange& exchange) {
      exchange.holds = [end, &exchange] {
        return !exchange.answered.pieces.empty() && std::chrono::steady_clock::now() < end;
      };
    };
    audio =
        bench.ask(pcm_request(long_text(15), 1, R"("timeout":)" + std::to_string(limit_s)), takes_his_time);
  }
  EXPECT_TRUE(audio.whole) << (audio.error ? audio.error->message() : "");
}

TEST(SpeechAnswer, AnUnspeakableTextIsAShortSilenceWithAWarning) {
  RouteBench bench(openai_routes, shared_engine());
  for (const std::string fields : {"", R"("stream":false)"}) {
    const Answered answered = bench.ask(pcm_request("🎉", 1, fields));
    EXPECT_EQ(answered.status, 200) << answered.body();
    EXPECT_EQ(answered.body().find_first_not_of('\0'), std::string::npos);
    EXPECT_GE(answered.body().size(), 6400u);
    EXPECT_NE(answered.header("x-shoal-warnings").find("nothing in it"), std::string::npos);
  }
  const Answered events = bench.ask(pcm_request("🎉", 1, R"("stream_format":"sse")"));
  EXPECT_NE(events.pieces.back().find("nothing in it"), std::string::npos) << "in the last event as well";
  EXPECT_EQ(bench.ask(pcm_request("   ", 1)).status, 400);
  EXPECT_EQ(bench.ask(pcm_request("", 1)).status, 400);
}

TEST(SpeechAnswer, ObeysTheLimitsOfTheServer) {
  ServerConfig config;
  config.max_text_length = 20;
  config.max_references = 1;
  config.max_reference_s = 1;
  config.max_timeout_s = 5;
  RouteBench bench(openai_routes, shared_engine(), config);
  const auto refused = [&](const Request& request) {
    const Answered answered = bench.ask(request);
    return std::to_string(answered.status) + " " + text_at(body_value(answered), {"error", "param"});
  };
  EXPECT_EQ(bench.ask(pcm_request("Twenty letters are ö", 1)).status, 200) << "characters, not bytes";
  EXPECT_EQ(refused(pcm_request("Twenty one letters ö.", 1)), "400 input");
  const auto clips = [](int count, double seconds) {
    std::string list;
    for (int i = 0; i < count; ++i)
      list += (i ? "," : "") +
              (R"({"audio":")" + to_base64(testing::noise_wav(seconds, 5)) + R"(","text":"x y"})");
    return R"("references":[)" + list + "]";
  };
  EXPECT_EQ(bench.ask(pcm_request("A fish.", 1, clips(1, 0.9))).status, 200);
  EXPECT_EQ(refused(pcm_request("A fish.", 1, clips(2, 0.5))), "400 references");
  EXPECT_EQ(bench.ask(pcm_request("A fish.", 1, clips(1, 1.1))).status, 413);
  EXPECT_EQ(refused(pcm_request("A fish.", 1, R"("timeout":5.5)")), "400 timeout");
  EXPECT_EQ(refused(pcm_request(std::string(262145, 'a'), 1)), "400 input");
}

TEST(SpeechAnswer, AFullQueueAndAStoppedEngineAreReported) {
  EngineConfig config = testing::built_in_config();
  config.max_batch_size = config.max_streams = config.max_queue = 1;
  RouteBench bench(openai_routes, {}, config);
  std::vector<Request> requests;
  for (int seed = 0; seed < 6; ++seed) requests.push_back(pcm_request("A fish.", seed));
  int refused = 0;
  for (const Answered& answered : bench.ask_all(requests)) {
    if (answered.status == 200) continue;
    ++refused;
    EXPECT_EQ(answered.status, 429);
    EXPECT_FALSE(answered.header("Retry-After").empty());
    EXPECT_EQ(text_at(body_value(answered), {"error", "code"}), "rate_limit_exceeded");
  }
  EXPECT_GE(refused, 1);
  EXPECT_LE(refused, 5);
  EXPECT_EQ(bench.ask(pcm_request("A fish.", 0)).status, 200) << "room again";
  bench.engine().stop();
  const Answered stopped = bench.ask(pcm_request("A fish.", 0));
  EXPECT_EQ(stopped.status, 503);
  EXPECT_FALSE(stopped.header("Retry-After").empty());
}

TEST(SpeechAnswer, TheErrorOfADamagedVoiceRevealsNoPath) {
  RouteBench bench(fish_routes, shared_engine());
  const std::string folder = bench.engine().config().references_dir + "/broken";
  std::filesystem::create_directories(folder);
  FILE* clip = std::fopen((folder + "/clip.wav").c_str(), "wb");
  std::fputs("not a sound", clip);
  std::fclose(clip);
  FILE* words = std::fopen((folder + "/clip.lab").c_str(), "wb");
  std::fputs("words", words);
  std::fclose(words);
  const Answered answered =
      bench.ask(json_request("/v1/tts", R"({"text":"A fish.","reference_id":"broken"})"));
  std::filesystem::remove_all(folder);
  EXPECT_EQ(answered.status, 400);
  EXPECT_NE(answered.body().find("voice: its files cannot be used"), std::string::npos) << answered.body();
  EXPECT_EQ(answered.body().find(folder), std::string::npos) << answered.body();
}

// The harness itself: a handler that hangs fails its test, and nothing else.
TEST(SpeechAnswer, ATestOfAHandlerThatDoesNotEndFails) {
  RouteBench bench(openai_routes, shared_engine());
  bench.patience = std::chrono::seconds(1);
  const auto takes_nothing = [](FakeExchange& exchange) { exchange.holds = [] { return true; }; };
  EXPECT_THROW(bench.ask(pcm_request(long_text(1), 1), takes_nothing), Error);
}

TEST(SpeechAnswer, AnAnswerWithoutSoundIsAnError) {
  RouteBench bench(openai_routes, shared_engine());
  const Answered answered = bench.ask(pcm_request("A fish.", 1, R"("max_new_tokens":1)"));
  EXPECT_EQ(answered.status, 400) << answered.body();
}

}  // namespace
}  // namespace shoal::server
