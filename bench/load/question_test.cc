#include "bench/load/question.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/base64.h"
#include "bench/load/sounds_testing.h"

namespace shoal::load {
namespace {

using testing::HasSubstr;

Question usual_question() {
  return {.model = "tts-1", .texts = {"One.", "Two \"2\"."}, .voices = {"a", "b"}, .speech_seed = 7};
}
std::string asked(const std::string& url, const Question& question, const Turn& turn) {
  return bytes_of(make_target(url, "auto"), question, turn);
}
nlohmann::json body_in(const std::string& request) {
  return nlohmann::json::parse(request.substr(request.find("\r\n\r\n") + 4));
}
std::string clip_bytes() { return WavHeader{.data_bytes = 2 * 24'000}.text() + samples_of(24'000); }

TEST(Question, HasTheFieldsOfItsApi) {
  Question question = usual_question();
  question.fields = {{"stream", "true"}, {"style", "calm"}};
  question.headers = {{"X-Team", "one"}};
  question.api_key = "k";
  const std::string openai = asked("http://h:81", question, {.index = 1});
  EXPECT_TRUE(openai.starts_with("POST /v1/audio/speech HTTP/1.1\r\nHost: h:81\r\n")) << openai;
  EXPECT_THAT(openai, HasSubstr("Authorization: Bearer k\r\nX-Team: one\r\n\r\n"));
  const std::string body = openai.substr(openai.find("\r\n\r\n") + 4);
  EXPECT_EQ(
      body,
      R"({"model":"tts-1","input":"Two \"2\".","voice":"b","response_format":"wav","seed":8,"stream":true,)"
      R"("style":"calm"})");
  EXPECT_THAT(openai, HasSubstr("Content-Length: " + std::to_string(body.size()) + "\r\n"));
  question.voices.clear();
  question.model.clear();
  question.fields.clear();
  const std::string fish = asked("http://h/v1/tts", question, {});
  EXPECT_THAT(fish, testing::EndsWith(R"({"text":"One.","format":"wav","streaming":true,"seed":7})"));
  question.model = "s1";
  EXPECT_EQ(body_in(asked("http://h/v1/tts", question, {}))["model"], "s1");
}

TEST(Question, ValuesOfOneFieldAreAskedForInTurn) {
  Question question = usual_question();
  question.fields = {
      {"max_new_tokens", "64"}, {"stream", "true"}, {"max_new_tokens", "96"}, {"max_new_tokens", "128"}};
  for (const auto& [index, frames] : {std::pair{0, 64}, {1, 96}, {2, 128}, {3, 64}}) {
    for (const char* url : {"http://h", "http://h/v1/tts", "http://h/v1/tts/batch"}) {
      const nlohmann::json body = body_in(asked(url, question, {.index = static_cast<uint64_t>(index)}));
      EXPECT_EQ(body["max_new_tokens"], frames) << url;
      EXPECT_EQ(body["stream"], true) << url;
    }
  }
}

TEST(Question, ABatchHasItsOwnTextsVoicesAndSeeds) {
  Question question = usual_question();
  question.items = 3;
  question.model.clear();
  const std::string request = asked("http://h/v1/tts/batch", question, {.index = 1});
  EXPECT_THAT(request, HasSubstr("Accept: application/x-ndjson\r\n"));
  EXPECT_EQ(body_in(request),
            nlohmann::json::parse(
                R"({"format":"wav","items":[{"text":"Two \"2\".","voice":"b","seed":10},)"
                R"({"text":"One.","voice":"a","seed":11},{"text":"Two \"2\".","voice":"b","seed":12}]})"));
  EXPECT_EQ(texts_of(question, 1), (std::vector<std::string>{"Two \"2\".", "One.", "Two \"2\"."}));
  EXPECT_EQ(voices_of(question, 1), "b,a");
}

TEST(Question, AnUtteranceStartsSpeaksAndEnds) {
  Question question = usual_question();
  question.container = Container::pcm;
  const std::vector<std::string> messages = messages_of(question, {.index = 2});
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0], R"({"type":"start","format":"pcm","model":"tts-1","voice":"a","seed":9})");
  EXPECT_EQ(messages[1], R"({"type":"text","text":"One."})");
  EXPECT_EQ(messages[2], R"({"type":"end"})");
}

TEST(Question, CarriesClipsToFollow) {
  Question question = usual_question();
  question.references.clips.emplace_back(clip_bytes(), "Said \"so\".", "clip");
  const nlohmann::json expected = {{{"audio", to_base64(clip_bytes())}, {"text", "Said \"so\"."}}};
  EXPECT_EQ(body_in(asked("http://h", question, {}))["references"], expected);
  EXPECT_EQ(body_in(asked("http://h/v1/tts", question, {}))["references"], expected);
  EXPECT_EQ(nlohmann::json::parse(messages_of(question, {}).front())["references"], expected);
  const nlohmann::json item = body_in(asked("http://h/v1/tts/batch", question, {}))["items"][0];
  EXPECT_EQ(item["reference_audio"], expected[0]["audio"]);
  EXPECT_EQ(item["reference_text"], "Said \"so\".");
}

TEST(Question, FreshClipsAreNewWithEachRequestOrEachLevel) {
  Question question = usual_question();
  for (const char* name : {"one", "two"}) question.references.clips.emplace_back(clip_bytes(), name, name);
  question.references.salt = 5;
  // Different clips of the requests of two levels, 0 to 5 and 6 to 11.
  const auto different = [&](Freshness freshness, uint64_t salt) {
    question.references.freshness = freshness;
    question.references.salt = salt;
    std::set<std::string> clips;
    for (uint64_t i = 0; i < 12; ++i)
      clips.insert(body_in(
          asked("http://h", question, {.index = i, .level_begin = i / 6 * 6}))["references"][0]["audio"]);
    return clips;
  };
  EXPECT_EQ(different(Freshness::none, 5).size(), 1u);
  EXPECT_EQ(different(Freshness::request, 5).size(), 12u);
  EXPECT_EQ(different(Freshness::level, 5).size(), 4u) << "two clips in two levels";
  EXPECT_EQ(different(Freshness::request, 5), different(Freshness::request, 5));
  EXPECT_NE(different(Freshness::request, 5), different(Freshness::request, 100)) << "another run";
}

TEST(Question, CountsCharactersNotBytes) { EXPECT_EQ(characters_of("Grüße"), 5); }

}  // namespace
}  // namespace shoal::load
