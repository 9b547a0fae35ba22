// SageMaker's two paths: the same answers as the routes behind them.
#include <gtest/gtest.h>

#include "base/base64.h"
#include "server/routes/clip_testing.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::json_request;
using testing::member;
using testing::text_of;

std::vector<Route> all_that_speak(const ServerConfig& config) {
  std::vector<Route> routes = sagemaker_routes(config);
  for (const auto part : {fish_routes, openai_routes, batch_routes})
    for (Route& route : part(config)) routes.push_back(std::move(route));
  return routes;
}

class SageMaker : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    engine_ = new Engine(testing::built_in_config());
    engine_->start();
  }
  static void TearDownTestSuite() {
    delete engine_;
    engine_ = nullptr;
  }
  Answered ask(const std::string& path, const std::string& body, const char* accept = nullptr) {
    Request request = json_request(path, body);
    if (accept) request.headers.add("Accept", accept);
    return bench_.ask(std::move(request));
  }

  static Engine* engine_;
  testing::RouteBench bench_{all_that_speak, *engine_};
};
Engine* SageMaker::engine_ = nullptr;

constexpr const char* kBody = R"({"text":"A fish.","seed":3,"max_new_tokens":20})";
constexpr const char* kInput =
    R"({"model":"tts-1","input":"A fish.","voice":"alloy","seed":3,"max_new_tokens":20,"response_format":"flac"})";

TEST_F(SageMaker, PingReportsReadiness) {
  EXPECT_EQ(bench_.ask(testing::get_request("/ping")).status, 200);
  bench_.draining() = true;
  EXPECT_EQ(bench_.ask(testing::get_request("/ping")).status, 503);
  Engine idle(testing::built_in_config());
  testing::RouteBench bench(sagemaker_routes, idle);
  EXPECT_EQ(bench.ask(testing::get_request("/ping")).status, 503);
  for (const Route& route : bench.routes()) EXPECT_EQ(route.access == Access::open, route.path == "/ping");
}

TEST_F(SageMaker, EachBodyReachesItsRoute) {
  const Answered speech = ask("/invocations", kBody);
  ASSERT_EQ(speech.status, 200) << speech.body();
  EXPECT_EQ(speech.content_type, "audio/wav");
  EXPECT_EQ(speech.body(), ask("/v1/tts", kBody).body());

  const Answered input = ask("/invocations", kInput);
  ASSERT_EQ(input.status, 200) << input.body();
  EXPECT_EQ(input.content_type, "audio/flac");
  EXPECT_EQ(input.body(), ask("/v1/audio/speech", kInput).body());

  const std::string batch = R"({"items":[{"text":"A fish.","seed":3}],"max_new_tokens":20})";
  const Value answer = read_json(ask("/invocations", batch).body());
  EXPECT_EQ(*from_base64(text_of(testing::array_of(answer, "results").at(0), "audio_base64")), speech.body());
  EXPECT_EQ(ask("/invocations", batch, "application/x-ndjson").content_type, "application/x-ndjson");
  EXPECT_EQ(ask("/invocations", batch, "audio/mpeg").content_type, "application/json");
}

TEST_F(SageMaker, AcceptChoosesTheFormatUnlessTheBodyDoes) {
  EXPECT_EQ(ask("/invocations", kBody, "audio/mpeg").content_type, "audio/mpeg");
  EXPECT_EQ(ask("/invocations", kBody, "Audio/FLAC;q=1, */*").content_type, "audio/flac");
  EXPECT_EQ(ask("/invocations", kBody, "*/*").content_type, "audio/wav");
  EXPECT_EQ(ask("/invocations", kInput, "audio/wav").content_type, "audio/flac");  // it says flac
  const std::string asked = R"({"text":"A fish.","seed":3,"max_new_tokens":20,"format":"flac"})";
  EXPECT_EQ(ask("/invocations", kBody, "audio/flac").body(), ask("/v1/tts", asked).body());
}

TEST_F(SageMaker, ErrorsOfTheRouteHaveOurOwnForm) {
  for (const char* body : {"{}", R"({"inputs":"x"})", "[1]", R"("text")"}) {
    const Answered answer = ask("/invocations", body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_NE(text_of(member(read_json(answer.body()), "error"), "message").find("/v1/tts"),
              std::string::npos);
  }
  EXPECT_EQ(ask("/invocations", "{").status, 400);
  EXPECT_EQ(ask("/invocations", R"({"text":""})").status, 400);
  EXPECT_EQ(ask("/invocations", R"({"text":"A fish.","top_p":7})").status, 400);
  const Answered aac = ask("/invocations", R"({"text":"A fish.","max_new_tokens":20})", "audio/aac");
  EXPECT_EQ(aac.content_type, "audio/aac");
  Request other = json_request("/invocations", "x");
  other.headers = {{"Content-Type", "text/csv"}};
  EXPECT_EQ(bench_.ask(std::move(other)).status, 415);
}

TEST_F(SageMaker, TheTableDescribesEveryKindOfBody) {
  for (const Route& route : bench_.routes()) {
    if (route.path != "/invocations") continue;
    for (const char* field : {"items", "input", "text", "format", "response_format", "seed"})
      EXPECT_NE(std::ranges::find(route.doc.body, field, &FieldDoc::name), route.doc.body.end()) << field;
    for (const FieldDoc& field : route.doc.body) EXPECT_FALSE(field.required) << field.name;
  }
}

}  // namespace
}  // namespace shoal::server
