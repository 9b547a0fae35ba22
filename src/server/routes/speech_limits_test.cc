// What is told of names and what is not, and the memory of answers.
#include <gtest/gtest.h>

#include "server/routes/testing.h"

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

TEST(SpeechLimits, WholeAnswersKeepWithinTheirMemory) {
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

}  // namespace
}  // namespace shoal::server
