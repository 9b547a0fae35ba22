// Which names errors reveal, and the memory of answers.
#include <gtest/gtest.h>

#include "server/routes/routes_testing.h"

namespace shoal::server {
namespace {

using testing::json_request;

TEST(SpeechLimits, ANameThatLooksLikeAPathIsTheClientsOwnMistake) {
  EngineConfig config = testing::built_in_config();
  config.references_dir = "references";  // as by default: the name begins like the folder
  Engine engine(config);
  engine.start();
  testing::RouteBench bench(fish_routes, engine);
  for (const char* name : {"references/x", "references/../../x", "\\\"references/\\\"references/x\\\""}) {
    SCOPED_TRACE(name);
    const auto answer = bench.ask(
        json_request("/v1/tts", std::string(R"({"text":"A fish.","reference_id":")") + name + "\"}"));
    EXPECT_EQ(answer.status, 400) << answer.body();
    EXPECT_NE(answer.body().find("expected 1 to"), std::string::npos) << answer.body();
  }
}

TEST(SpeechLimits, WholeAnswersStayWithinTheirMemory) {
  ServerConfig config;
  config.max_body_memory_mb = config.max_body_mb = 1;  // 33 seconds of WAV
  testing::RouteBench bench(fish_routes, config);
  std::string text;
  for (int i = 0; i < 40; ++i) text += "The train leaves at noon, and we wait for it. ";
  const auto ask = [&](const std::string& body) { return bench.ask(json_request("/v1/tts", body)); };
  const auto whole = ask(R"({"seed":3,"text":")" + text + "\"}");
  EXPECT_EQ(whole.status, 429);
  EXPECT_NE(whole.body().find("max_body_memory_mb"), std::string::npos) << whole.body().substr(0, 200);
  EXPECT_EQ(bench.services().answers.held(), 0);
  EXPECT_EQ(ask(R"({"text":"A fish."})").status, 200);
  EXPECT_EQ(bench.services().answers.held(), 0);
}

// One at a time, so that the others do not overlap with the long one.
TEST(SpeechLimits, ABatchItemThatExceedsTheMemoryFailsAlone) {
  ServerConfig config;
  config.max_body_memory_mb = config.max_body_mb = 1;  // 6 seconds of samples
  config.max_concurrency_per_key = 1;
  testing::RouteBench bench(batch_routes, config);
  std::string text;
  for (int i = 0; i < 40; ++i) text += "The train leaves at noon, and we wait for it. ";
  const auto answer =
      bench.ask(json_request("/v1/tts/batch", R"({"seed":3,"items":[{"text":"A fish."},{"text":")" + text +
                                                  R"("},{"text":"A fish."}]})"));
  ASSERT_EQ(answer.status, 200) << answer.body().substr(0, 300);
  const Value body = read_json(answer.body());
  const auto& results = *body.find("results")->as<Value::Array>();
  ASSERT_EQ(results.size(), 3u);
  for (const size_t i : {0, 2}) EXPECT_EQ(*results[i].find("success"), Value{true}) << i;
  EXPECT_EQ(*results[1].find("success"), Value{false});
  EXPECT_EQ(*results[1].find("code"), Value{std::string("resource_exhausted")});
  const auto* told = results[1].find("error")->as<std::string>();
  ASSERT_TRUE(told);
  EXPECT_NE(told->find("max_body_memory_mb"), std::string::npos) << *told;
  EXPECT_EQ(bench.services().answers.held(), 0);
}

}  // namespace
}  // namespace shoal::server
