#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/routes/speech_testing.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::at;
using testing::body_value;
using testing::get_request;
using ::testing::HasSubstr;
using testing::RouteBench;
using testing::shared_engine;
using ::testing::StartsWith;
using testing::text_at;

class OpenAiLists : public ::testing::Test {
 protected:
  RouteBench bench{openai_routes, shared_engine()};
};

TEST_F(OpenAiLists, ModelsAndVoicesAreListed) {
  const Value models = body_value(bench.ask(get_request("/v1/models")));
  EXPECT_EQ(text_at(models, {"object"}), "list");
  const Value data = at(models, {"data"});
  ASSERT_EQ(data.as<Value::Array>()->size(), 4u);
  const Value& model = data.as<Value::Array>()->front();
  EXPECT_FALSE(model.find("alias_of"));
  const Value& alias = data.as<Value::Array>()->at(1);
  EXPECT_EQ(text_at(alias, {"id"}) + " " + text_at(alias, {"alias_of"}), "tts-1 shoal");
  EXPECT_EQ(body_value(bench.ask(get_request("/v1/models/tts-1"))), alias);
  EXPECT_EQ(bench.ask(get_request("/v1/audio/models")).body(),
            R"({"models":[{"id":"shoal","name":"shoal"},{"id":"tts-1","name":"tts-1","alias_of":"shoal"},)"
            R"({"id":"tts-1-hd","name":"tts-1-hd","alias_of":"shoal"},)"
            R"({"id":"gpt-4o-mini-tts","name":"gpt-4o-mini-tts","alias_of":"shoal"}]})");
  EXPECT_EQ(text_at(model, {"id"}), "shoal");
  EXPECT_EQ(text_at(model, {"object"}), "model");
  EXPECT_TRUE(at(model, {"created"}).as<int64_t>());
  EXPECT_EQ(body_value(bench.ask(get_request("/v1/models/shoal"))), model);
  EXPECT_EQ(text_at(body_value(bench.ask(get_request("/v1/models/tts-1"))), {"id"}), "tts-1");
  const Answered unknown = bench.ask(get_request("/v1/models/gpt-9"));
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(text_at(body_value(unknown), {"error", "code"}), "model_not_found");
  EXPECT_EQ(text_at(body_value(bench.ask(get_request("/v1/models/tts-1-hdd"))), {"error", "message"}),
            R"(model: there is none called "tts-1-hdd"; the nearest is "tts-1-hd"; see /v1/models)");

  const std::string voices = bench.ask(get_request("/v1/audio/voices")).body();
  EXPECT_THAT(
      voices,
      StartsWith(
          R"({"voices":[{"id":"default","name":"The model's own voice","model":"shoal"},{"id":"alloy","name":"alloy","model":"shoal"},)"
          R"({"id":"anna","name":"anna","model":"shoal"},)"));
  EXPECT_THAT(voices, HasSubstr(R"({"id":"clara","name":"clara","model":"shoal","fixed":true})"));
  EXPECT_THAT(voices,
              HasSubstr(R"({"id":"onyx","name":"onyx","model":"shoal","fixed":true,"alias_of":"oscar"})"));
  Request legacy = get_request("/v1/audio/voices");
  legacy.query = {{"legacy", "true"}};
  EXPECT_THAT(bench.ask(legacy).body(), StartsWith(R"({"voices":["default","alloy","anna","clara",)"));
}

TEST(OpenAiListRoutes, ListsAskForNoKeyWhereTheOperatorSaysSo) {
  ServerConfig open;
  open.list_without_key = true;
  for (const ServerConfig& config : {ServerConfig(), open}) {
    for (const Route& route : openai_routes(config)) {
      const bool is_list = route.path == "/v1/audio/voices" || route.path == "/v1/audio/models";
      EXPECT_EQ(route.access, is_list && config.list_without_key ? Access::open : Access::client)
          << route.path;
    }
  }
}

}  // namespace
}  // namespace shoal::server
