// Batches over HTTP: order, seeds, bad items, lines, deadlines, clients that leave.
#include <algorithm>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "base/base64.h"
#include "base/eventually_testing.h"
#include "server/routes/batch_run.h"
#include "server/routes/clip_testing.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::array_of;
using testing::is_true;
using testing::json_request;
using testing::member;
using testing::text_of;

constexpr const char* kBatch = "/v1/tts/batch";

std::vector<Route> batch_and_single(const ServerConfig& config) {
  std::vector<Route> routes = batch_routes(config);
  for (Route& route : fish_routes(config)) routes.push_back(std::move(route));
  return routes;
}

class Batches : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    EngineConfig config = testing::built_in_config();
    config.max_queue = 4;  // most of a batch waits for room
    engine_ = new Engine(config);
    engine_->start();
  }
  static void TearDownTestSuite() {
    delete engine_;
    engine_ = nullptr;
  }
  Answered ask(const std::string& body, const char* accept = nullptr,
               const testing::RouteBench::Prepare& prepare = {}) {
    Request request = json_request(kBatch, body);
    if (accept) request.headers.add("Accept", accept);
    return bench_.ask(std::move(request), prepare);
  }
  std::string sound_of_single(const std::string& text, int64_t seed, const std::string& more = "") {
    return bench_
        .ask(json_request("/v1/tts",
                          "{\"text\":\"" + text + "\",\"seed\":" + std::to_string(seed) + more + "}"))
        .body();
  }
  bool idle() {
    return eventually([&] {
      const Statistics now = engine_->statistics();
      return now.preparing + now.waiting + now.running + now.paused + now.finishing + now.kv.pages_used == 0;
    });
  }

  static Engine* engine_;
  testing::RouteBench bench_{batch_and_single, *engine_};
};
Engine* Batches::engine_ = nullptr;

TEST_F(Batches, ItemsEqualSingleRequests) {
  const Answered answer =
      ask(R"({"items":[{"text":"One fish."},{"text":"Two fishes.","seed":5},{"text":"One fish."},
      {"text":"One fish.","seed":5,"temperature":0.5,"max_new_tokens":9}],
      "seed":77,"max_new_tokens":30,"temperature":0.7,"top_p":0.8,"repetition_penalty":1.1,"chunk_length":200})");
  ASSERT_EQ(answer.status, 200) << answer.body();
  EXPECT_EQ(answer.content_type, "application/json");
  EXPECT_TRUE(answer.whole);
  const Value body = read_json(answer.body());
  EXPECT_TRUE(is_true(body, "success"));
  EXPECT_GT(*member(body, "total_time").as<double>(), 0);
  const Value::Array& results = array_of(body, "results");
  ASSERT_EQ(results.size(), 4u);
  const std::vector<SpeechRequest> asked = [] {
    std::vector<SpeechRequest> requests(4);
    for (SpeechRequest& request : requests) request.text = "One fish.", request.max_new_tokens = 1;
    return requests;
  }();
  const std::vector<BatchResult> derived = engine_->generate_batch(asked, {.seed = 77});
  std::set<int64_t> seeds;
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(is_true(results[i], "success"));
    EXPECT_TRUE(member(results[i], "error").is_null());
    EXPECT_EQ(member(results[i], "index"), (Value{static_cast<int64_t>(i)}));
    const int64_t seed = *member(results[i], "seed").as<int64_t>();
    seeds.insert(seed);
    if (i % 2 == 0)
      EXPECT_EQ(static_cast<uint64_t>(seed), derived[i].summary.seed);
    else
      EXPECT_EQ(seed, 5);
    const std::string more =
        i == 3 ? ",\"temperature\":0.5,\"max_new_tokens\":9" : ",\"temperature\":0.7,\"max_new_tokens\":30";
    const std::string alone = sound_of_single(i == 1 ? "Two fishes." : "One fish.", seed, more);
    ASSERT_TRUE(alone.starts_with("RIFF")) << alone.substr(0, 200);
    EXPECT_EQ(*from_base64(text_of(results[i], "audio_base64")), alone) << i;
  }
  EXPECT_EQ(seeds.size(), 3u);
}

TEST_F(Batches, AcceptNamesOfTheModelsOwnVoiceAndControlTokens) {
  const Answered answer = ask(
      R"({"items":[{"text":"A fish <|im_end|> swims"},{"text":"A fish <|im_end|> swims","voice":"built-in"},
      {"text":"A fish <|im_end|> swims","voice":"default"}],"seed":3,"max_new_tokens":12})");
  const Value body = read_json(answer.body());
  const Value::Array& results = array_of(body, "results");
  ASSERT_EQ(results.size(), 3u);
  for (const Value& result : results) {
    ASSERT_TRUE(is_true(result, "success"));
    const int64_t seed = *member(result, "seed").as<int64_t>();
    EXPECT_EQ(*from_base64(text_of(result, "audio_base64")),
              sound_of_single("A fish <|im_end|> swims", seed, ",\"max_new_tokens\":12"));
  }
}

TEST_F(Batches, OneBadItemNeverFailsAnother) {
  const std::string clip = to_base64(testing::clip_file(1));
  struct Item {
    std::string json, told;  // the expected error; "" for a good item
  };
  const std::vector<Item> items = {
      {R"({"text":"A fish.","seed":1})", ""},
      {R"({"text":7})", "items[1].text"},
      {R"("text")", "items[2]"},
      {R"({})", "items[3].text"},
      {R"({"text":"A fish.","txet":"x"})", "items[4]"},
      {R"({"text":""})", "text"},
      {R"({"text":"A fish.","seed":-1})", "items[6].seed"},
      {R"({"text":"A fish.","temperature":1e308})", "items[7].temperature"},
      {R"({"text":"A fish.","max_new_tokens":-5})", "items[8].max_new_tokens"},
      {R"({"text":"A fish.","reference_audio":"?!","reference_text":"x"})", "items[9].reference_audio"},
      {R"({"text":"A fish.","reference_audio":")" + clip + "\"}", "reference_text"},
      {R"({"text":"A fish.","reference_text":"words"})", "reference_audio"},
      {R"({"text":"A fish.","reference_audio":"UklGRg==","reference_text":"x"})", "reference"},
      {R"({"text":"A fish.","voice":"nobody"})", "voice"},
      {R"({"text":"A fish.","voice":"../etc"})", "voice"},
      {R"({"text":"A fish.","chunk_length":3})", "chunk_length"},
      {R"(null)", "items[16]"},
      {R"({"text":"A fish.","seed":1,"reference_audio":")" + clip + R"(","reference_text":"words"})", ""},
      {R"({"text":"A fish.","seed":1,"reference_audio":null,"voice":null,"reference_text":""})", ""}};
  std::string body = R"({"max_new_tokens":20,"items":[)";
  for (size_t i = 0; i < items.size(); ++i) body += (i ? "," : "") + items[i].json;
  const Answered answer = ask(body + "]}");
  ASSERT_EQ(answer.status, 200) << answer.body();
  const Value told = read_json(answer.body());
  EXPECT_EQ(member(told, "success"), Value{false});
  const Value::Array& results = array_of(told, "results");
  ASSERT_EQ(results.size(), items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(is_true(results[i], "success"), items[i].told.empty())
        << i << write_json(results[i]).substr(0, 300);
    if (items[i].told.empty()) continue;
    EXPECT_NE(text_of(results[i], "error").find(items[i].told), std::string::npos)
        << text_of(results[i], "error");
    EXPECT_EQ(text_of(results[i], "error").find("/nonexistent"), std::string::npos)
        << text_of(results[i], "error");
    EXPECT_TRUE(member(results[i], "audio_base64").is_null());
  }
  const std::string alone = sound_of_single("A fish.", 1, ",\"max_new_tokens\":20");
  EXPECT_EQ(*from_base64(text_of(results[0], "audio_base64")), alone);
  EXPECT_EQ(*from_base64(text_of(results[18], "audio_base64")), alone);
  EXPECT_NE(*from_base64(text_of(results[17], "audio_base64")), alone);  // another voice
}

TEST_F(Batches, ABadBodyFailsTheWholeBatch) {
  const auto status = [&](const std::string& body) {
    const Answered answer = ask(body);
    EXPECT_EQ(member(read_json(answer.body()), "statusCode"), (Value{int64_t{answer.status}}));
    return answer.status;
  };
  EXPECT_EQ(status("{"), 400);
  for (const char* body :
       {"{}", "[]", R"({"items":[]})", R"({"items":null})", R"({"items":{}})",
        R"({"items":[{"text":"a"}],"itmes":1})", R"({"items":[{"text":"a"}],"format":"midi"})",
        R"({"items":[{"text":"a"}],"temperature":-1})", R"({"items":[{"text":"a"}],"top_p":1e308})",
        R"({"items":[{"text":"a"}],"max_new_tokens":-1})",
        R"({"items":[{"text":"a"}],"repetition_penalty":"x"})",
        R"({"items":[{"text":"a"}],"chunk_length":9e18})", R"({"items":[{"text":"a"}],"seed":-3})",
        R"({"items":[{"text":"a"}],"timeout":0})", R"({"items":[{"text":"a"}],"timeout":1e9})"})
    EXPECT_TRUE(status(body) == 422 || (status(body) == 400 && std::string(body) == "[]")) << body;
  std::string many = R"({"items":[{"text":"a"})";
  for (int i = 0; i < ServerConfig().max_batch_items; ++i) many += R"(,{"text":"a"})";
  EXPECT_EQ(status(many + "]}"), 422);
  Engine idle_engine(testing::built_in_config());
  testing::RouteBench bench(batch_routes, idle_engine);
  EXPECT_EQ(bench.ask(json_request(kBatch, R"({"items":[{"text":"a fish"}]})")).status, 503);
}

TEST_F(Batches, EachLineIsSentWhenItsItemEnds) {
  std::string body = R"({"max_new_tokens":12,"seed":4,"items":[{"text":"A fish.","max_new_tokens":200})";
  for (int i = 1; i < 12; ++i) body += R"(,{"text":"Fish number )" + std::to_string(i) + ".\"}";
  body += R"(,{"text":3}]})";
  const Answered lines = ask(body, "Application/X-NDJSON");
  ASSERT_EQ(lines.status, 200);
  EXPECT_EQ(lines.content_type, "application/x-ndjson");
  EXPECT_TRUE(lines.whole);
  EXPECT_EQ(lines.pieces.size(), 13u);  // each on its own
  const Value whole = read_json(ask(body).body());
  const Value::Array& results = array_of(whole, "results");
  std::vector<size_t> order;
  for (const std::string& piece : lines.pieces) {
    ASSERT_TRUE(piece.ends_with("\n"));
    ASSERT_EQ(std::count(piece.begin(), piece.end(), '\n'), 1);
    const Value line = read_json(std::string_view(piece).substr(0, piece.size() - 1));
    const auto index = static_cast<size_t>(*member(line, "index").as<int64_t>());
    order.push_back(index);
    ASSERT_LT(index, results.size());
    for (const char* name : {"success", "audio_base64", "error", "seed"})
      EXPECT_EQ(member(line, name), member(results[index], name)) << index << name;
  }
  EXPECT_NE(order.front(), 0u);  // the longest does not hold up the others
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], i);
  for (size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(member(results[i], "index"), (Value{static_cast<int64_t>(i)}));
}

TEST_F(Batches, SpeaksEveryFormat) {
  const std::map<std::string, std::string> beginnings = {{"wav", "RIFF"}, {"flac", "fLaC"}, {"opus", "OggS"},
                                                         {"mp3", "\xFF"}, {"aac", "\xFF"},  {"pcm", ""}};
  for (const auto& [format, beginning] : beginnings) {
    const Value body = read_json(
        ask(R"({"items":[{"text":"A fish.","seed":1}],"max_new_tokens":20,"format":")" + format + "\"}")
            .body());
    const Value::Array& results = array_of(body, "results");
    ASSERT_EQ(results.size(), 1u) << format;
    const std::string sound = *from_base64(text_of(results[0], "audio_base64"));
    EXPECT_TRUE(sound.starts_with(beginning)) << format;
    EXPECT_GT(sound.size(), 100u) << format;
  }
}

std::string endless_batch(int items, const std::string& more = "") {
  const std::string text(900, 'a');
  std::string body =
      R"({"max_new_tokens":0,"chunk_length":1000)" + more + R"(,"items":[{"text":"A.","max_new_tokens":4})";
  for (int i = 1; i < items; ++i) body += ",{\"text\":\"" + text + " and so on.\"}";
  return body + "]}";
}

// A waiting answer blocks the rest of the batch until it is taken or the client is gone.
TEST_F(Batches, ResultsWaitForASlowReader) {
  boost::asio::io_context context(1);
  const Request from = json_request(kBatch, "");
  constexpr size_t kItems = 120;  // more than the engine has room for
  const auto batch = [] {
    BatchRequest asked;
    asked.engine = engine_;
    asked.timeout = std::chrono::hours(1);
    asked.sample_rate_hz = engine_->sample_rate_hz();
    asked.most_waiting_bytes = 1;
    for (size_t i = 0; i < kItems; ++i) {
      SpeechRequest speech;
      speech.text = "A fish.";
      speech.max_new_tokens = 6;
      asked.items.push_back({std::move(speech), {}});
    }
    return asked;
  };
  const auto taken = [&](size_t most) -> Task<std::set<size_t>> {
    std::set<size_t> indices;
    const uint64_t before = engine_->statistics().submitted;
    BatchRun run(context.get_executor(), bench_.services(), from, batch(), {});
    EXPECT_TRUE(eventually([&] { return engine_->statistics().submitted > before; }) && idle());
    EXPECT_LT(engine_->statistics().submitted, before + kItems) << "nobody has taken anything";
    EXPECT_TRUE(eventually([&] { return bench_.services().answers.held() > 0; }));
    while (const auto answer = co_await run.next()) {
      EXPECT_TRUE(answer->success) << answer->json;
      indices.insert(answer->index);
      if (indices.size() == most) break;  // the rest is cancelled, including waiting items
    }
    co_return indices;
  };
  for (const size_t most : {kItems, size_t{2}}) {
    auto indices = boost::asio::co_spawn(context.get_executor(), taken(most), boost::asio::use_future);
    context.restart();
    context.run();
    EXPECT_EQ(indices.get().size(), most);
    EXPECT_EQ(bench_.services().answers.held(), 0);
  }
  EXPECT_TRUE(idle());
}

TEST_F(Batches, RunsNoMoreItemsAtOnceThanItsKeyAllows) {
  ServerConfig config;
  config.max_concurrency_per_key = 2;
  testing::RouteBench bench(batch_routes, *engine_, config);
  std::string body = R"({"max_new_tokens":20,"items":[{"text":"A fish.","max_new_tokens":4})";
  for (int i = 1; i < 10; ++i) body += R"(,{"text":"One more fish."})";
  Request request = json_request(kBatch, body + "]}");
  request.headers.add("Accept", "application/x-ndjson");
  uint64_t most = 0;
  const Answered answer = bench.ask(std::move(request), [&](testing::FakeExchange& exchange) {
    exchange.on_piece = [&](testing::FakeExchange&) {
      const Statistics now = engine_->statistics();
      const uint64_t ended = now.refused + now.completed + now.cancelled + now.expired + now.failed;
      most = std::max(most, now.submitted - ended);
    };
  });
  EXPECT_EQ(answer.pieces.size(), 10u);
  EXPECT_EQ(answer.body().find(R"("success":false)"), std::string::npos) << answer.body().substr(0, 300);
  EXPECT_GE(most, 1u);
  EXPECT_LE(most, 2u);
}

TEST(BatchQueue, AFullQueueRefusesABatchAtOnce) {
  EngineConfig config = testing::built_in_config();
  config.max_batch_size = config.max_streams = config.max_queue = 1;
  config.prefetch_s = 1;
  testing::RouteBench bench(batch_routes, {}, config);
  SpeechRequest slow;
  slow.text = std::string(900, 'a');
  slow.max_new_tokens = 0;
  slow.chunk_length = 1000;
  Speech speaking = bench.engine().submit(slow);  // nobody reads it: it keeps the only place
  ASSERT_TRUE(eventually([&] { return bench.engine().statistics().paused == 1; }));
  Speech waiting = bench.engine().submit(slow);
  const std::string body = R"({"items":[{"text":"A fish."}],"max_new_tokens":8,"timeout":)";
  const Answered refused = bench.ask(json_request(kBatch, body + "5}"));
  EXPECT_EQ(refused.status, 429) << refused.body();
  EXPECT_FALSE(refused.header("Retry-After").empty());
  EXPECT_NE(refused.body().find("queue is full"), std::string::npos) << refused.body();
  speaking.cancel();
  waiting.cancel();
  ASSERT_TRUE(eventually([&] { return speaking.ended() && waiting.ended(); }));
  EXPECT_EQ(bench.ask(json_request(kBatch, body + "60}")).status, 200);
}

TEST_F(Batches, AClientThatLeavesEndsItsItems) {
  const uint64_t completed = engine_->statistics().completed;
  const Answered gone = ask(endless_batch(30), "application/x-ndjson", [](auto& exchange) {
    exchange.on_piece = [](auto& after) { after.leave(); };  // after the first line
  });
  EXPECT_EQ(gone.pieces.size(), 1u);
  EXPECT_FALSE(gone.whole);
  ASSERT_TRUE(gone.error);
  EXPECT_EQ(gone.error->code(), ErrorCode::cancelled);
  EXPECT_TRUE(idle());
  EXPECT_LE(engine_->statistics().completed, completed + 4);  // of 30

  const Answered before = ask(endless_batch(30), nullptr, [](auto& exchange) { exchange.leave(); });
  EXPECT_EQ(before.status, 0);
  EXPECT_EQ(before.error->code(), ErrorCode::cancelled);
  EXPECT_TRUE(idle());
}

TEST_F(Batches, ADeadlineEndsTheRemainingItems) {
  const Answered answer = ask(endless_batch(30, R"(,"timeout":1.5)"));
  ASSERT_EQ(answer.status, 200) << answer.body();
  EXPECT_TRUE(answer.whole);
  const Value body = read_json(answer.body());
  const Value::Array& results = array_of(body, "results");
  ASSERT_EQ(results.size(), 30u);
  EXPECT_EQ(member(body, "success"), Value{false});
  EXPECT_EQ(text_of(results[29], "code"), "deadline_exceeded");
  EXPECT_NE(text_of(results[29], "error").find("time"), std::string::npos);
  EXPECT_TRUE(idle());
}

TEST_F(Batches, ConcurrentBatchesDoNotMix) {
  std::vector<Request> requests;
  for (int i = 0; i < 5; ++i) {
    requests.push_back(json_request(kBatch, R"({"max_new_tokens":8,"items":[{"text":"A fish.","seed":1},
        {"text":"A fish.","seed":)" + std::to_string(100 + i) +
                                                "}]}"));
  }
  testing::RouteBench bench(batch_routes);  // whose queue has room for all
  const std::vector<Answered> answers = bench.ask_all(std::move(requests));
  std::set<std::string> firsts, seconds;
  for (const Answered& answer : answers) {
    const Value body = read_json(answer.body());
    ASSERT_TRUE(is_true(body, "success"));
    firsts.insert(text_of(array_of(body, "results")[0], "audio_base64"));
    seconds.insert(text_of(array_of(body, "results")[1], "audio_base64"));
  }
  EXPECT_EQ(firsts.size(), 1u);
  EXPECT_EQ(seconds.size(), 5u);
}

}  // namespace
}  // namespace shoal::server
