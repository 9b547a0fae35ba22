// Several models behind the routes.
#include "server/routes/models.h"

#include <gmock/gmock.h>

#include "server/routes/kokoro_testing.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::at;
using testing::body_value;
using ::testing::ElementsAre;
using testing::get_request;
using ::testing::HasSubstr;
using testing::json_request;
using testing::list_at;
using testing::sound_of;
using testing::speaking_routes;
using testing::spoken_by;
using testing::text_at;

class TwoModels : public ::testing::Test {
 protected:
  Answered ask(const std::string& path, const std::string& body) {
    return bench.ask(json_request(path, body));
  }
  Value told(const std::string& path, const std::string& model = "") {
    Request request = get_request(path);
    if (!model.empty()) request.query = {{"model", model}};
    return body_value(bench.ask(request));
  }

  Engine& built_in = testing::shared_engine();
  Engine& kokoro = testing::shared_kokoro();
  testing::RouteBench bench{speaking_routes, {{"shoal", &built_in}, {"tiny", &kokoro}}};
};

TEST_F(TwoModels, TheModelNameChooses) {
  const std::string fish = testing::pcm_of(sound_of(built_in, testing::spoken("Hello there.")));
  const std::string moon = testing::pcm_of(sound_of(kokoro, spoken_by("", "Hello there.")));
  const auto say = [&](const std::string& fields) {
    return ask("/v1/audio/speech",
               R"({"input":"Hello there.","seed":7,"response_format":"pcm",)" + fields + "}");
  };
  for (const char* first : {"shoal", "tts-1", "tts-1-hd", "gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-12-15"})
    EXPECT_TRUE(say(R"("sample_rate":16000,"voice":"default","max_new_tokens":20,"model":")" +
                    std::string(first) + "\"")
                    .body() == fish)
        << first;
  for (const char* second : {"tiny", "kokoro"})
    EXPECT_TRUE(say(R"("model":")" + std::string(second) + "\"").body() == moon) << second;
  EXPECT_TRUE(say(R"("voice":"default")").body() == moon) << "as Kokoro-FastAPI has it";
  const Answered unknown = say(R"("model":"other")");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(text_at(body_value(unknown), {"error", "code"}), "model_not_found");
  EXPECT_EQ(text_at(body_value(say(R"("model":"shoal")")), {"error", "param"}), "voice");
  EXPECT_EQ(text_at(body_value(say(R"("model":"shoal","voice":"default","speed":5)")), {"error", "param"}),
            "speed");
  EXPECT_TRUE(ask("/v1/tts", R"({"text":"Hello there.","seed":7,"format":"pcm","model":"tiny"})").body() ==
              moon);
  const Answered first =
      ask("/v1/tts", R"({"text":"Hello there.","seed":7,"format":"pcm","max_new_tokens":20,)"
                     R"("temperature":0.5})");
  EXPECT_EQ(first.status, 200) << "the first one draws tokens";
  const Answered captions =
      ask("/dev/captioned_speech", R"({"input":"Hello.","model":"shoal","voice":"default"})");
  EXPECT_EQ(text_at(body_value(captions), {"detail", "param"}), "return_timestamps");
  EXPECT_EQ(ask("/dev/phonemize", R"({"text":"Hello there."})").status, 200);
  EXPECT_EQ(ask("/dev/phonemize", R"({"text":"Hello there.","model":"shoal"})").status, 400);
}

TEST_F(TwoModels, AHostedNameInTheHeaderChoosesTheClosestModel) {
  testing::RouteBench other_order(speaking_routes, {{"tiny", &kokoro}, {"shoal", &built_in}});
  const auto said_by = [&](testing::RouteBench& server, const char* model) {
    Request request = testing::json_request(
        "/v1/tts", R"({"text":"Hello there.","seed":7,"format":"pcm","max_new_tokens":)" +
                       std::to_string(std::string_view(model) == "tiny" ? 1024 : 20) + "}");
    request.headers.add("model", model);
    return server.ask(request).header("x-shoal-sample-rate");
  };
  for (testing::RouteBench* server : {&bench, &other_order}) {
    for (const char* hosted : {"s1", "speech-1.5", "s2-pro", "shoal"})
      EXPECT_EQ(said_by(*server, hosted), "16000");
    EXPECT_EQ(said_by(*server, "tiny"), "24000") << "a model of ours";
  }
}

TEST(ModelNames, MayHaveSlashes) {
  const std::vector<ServedModel> models = {{"hexgrad/Kokoro-82M", &testing::shared_engine()}};
  testing::RouteBench bench(openai_routes, models);
  const Answered told = bench.ask(testing::get_request("/v1/models/hexgrad/Kokoro-82M"));
  EXPECT_EQ(told.status, 200) << told.body();
  EXPECT_EQ(text_at(body_value(told), {"id"}), "hexgrad/Kokoro-82M");
  EXPECT_EQ(bench.ask(testing::get_request("/v1/models/Kokoro-82M")).status, 404);
}

TEST(ModelNames, MayCarryADate) {
  const Models models({{"shoal", &testing::shared_engine()}, {"tts-1-1106", &testing::shared_kokoro()}});
  const auto found = [&](std::string_view name) {
    const ServedModel* model = models.find(name);
    return model ? model->name : "(none)";
  };
  for (const char* name : {"tts-1", "tts-1-hd-1106", "tts-1-0613", "gpt-4o-mini-tts-2025-03-20",
                           "gpt-4o-mini-tts-2025-12-15", "tts-1-hd-2031-01-01"})
    EXPECT_EQ(found(name), "shoal") << name;
  EXPECT_EQ(found("tts-1-1106"), "tts-1-1106") << "a model that is called so";
  EXPECT_EQ(found("kokoro-2025-01-01"), "tts-1-1106");
  for (const char* name : {"tts-1-", "tts-1-11", "tts-1-110a", "tts-1-11061", "tts-1-hd-2025-1-15",
                           "shoal-1106", "gpt-4o-tts-2025-12-15", "-1106", "1106", "tts-1-1106-1106"})
    EXPECT_EQ(found(name), "(none)") << name;
}

TEST_F(TwoModels, AreListedAndCounted) {
  const Value models = told("/v1/models");
  const Value::Array data = list_at(models, "data");
  std::string names;
  for (const Value& model : data) names += text_at(model, {"id"}) + ">" + text_at(model, {"alias_of"}) + " ";
  EXPECT_EQ(names,
            "shoal>(absent) tiny>(absent) tts-1>shoal tts-1-hd>shoal gpt-4o-mini-tts>shoal kokoro>tiny ");
  EXPECT_EQ(text_at(told("/v1/models/tiny"), {"id"}), "tiny");
  std::vector<std::string> of_both, of_one;
  for (const Value& voice : list_at(told("/v1/audio/voices"), "voices"))
    if (!voice.find("fixed")) of_both.push_back(text_at(voice, {"model"}) + "/" + text_at(voice, {"id"}));
  EXPECT_THAT(of_both, ElementsAre("shoal/default", "shoal/alloy", "shoal/anna", "tiny/default",
                                   "tiny/af_one", "tiny/am_adam", "tiny/bm_two", "tiny/jf_three"));
  const Value voices = told("/v1/audio/voices", "tiny");
  const Value::Array list = list_at(voices, "voices");
  ASSERT_EQ(list.size(), 6u);
  EXPECT_EQ(text_at(list[3], {"language"}), "en-gb");
  EXPECT_EQ(text_at(list[5], {"id"}) + " " + text_at(list[5], {"alias_of"}), "alloy am_adam");
  EXPECT_EQ(text_at(told("/v1/audio/voices", "nobody"), {"error", "param"}), "model");

  const Value health = told("/health");
  EXPECT_EQ(list_at(health, "models").size(), 2u);
  EXPECT_EQ(text_at(health, {"state"}), "ready");
  EXPECT_EQ(at(told("/ready"), {"ready"}), Value{true});
  const Value stats = told("/v1/stats");
  EXPECT_EQ(text_at(stats, {"name"}), "shoal");
  EXPECT_EQ(list_at(stats, "models").size(), 2u);
  EXPECT_EQ(text_at(told("/v1/stats", "kokoro"), {"name"}), "tiny");
  const std::string metrics = bench.ask(get_request("/metrics")).body();
  EXPECT_THAT(metrics,
              AllOf(HasSubstr("shoal_ready{model=\"shoal\"} 1"), HasSubstr("shoal_ready{model=\"tiny\"} 1")));
}

TEST(Models, TheServerIsNotReadyUntilEveryModelIsLoaded) {
  Engine late(testing::built_in_config());
  testing::RouteBench bench{speaking_routes, {{"tiny", &testing::shared_kokoro()}, {"late", &late}}};
  EXPECT_EQ(bench.ask(get_request("/ready")).status, 503);
  EXPECT_EQ(text_at(body_value(bench.ask(get_request("/health"))), {"state"}), "stopped");
  const Answered early = bench.ask(
      json_request("/v1/audio/speech", R"({"input":"Hello there.","model":"tiny","response_format":"pcm"})"));
  EXPECT_EQ(early.status, 200);
  const Answered other =
      bench.ask(json_request("/v1/audio/speech", R"({"input":"Hello.","model":"late","voice":"default"})"));
  EXPECT_EQ(other.status, 503);
}

}  // namespace
}  // namespace shoal::server
