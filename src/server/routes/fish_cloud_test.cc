// What clients of the hosted service send besides.
#include <gtest/gtest.h>

#include "server/routes/speech_testing.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::body_value;
using testing::json_request;
using testing::RouteBench;
using testing::shared_engine;
using testing::text_at;

const std::string kCloudText = "One small fish swims.";

class FishCloud : public ::testing::Test {
 protected:
  RouteBench bench{fish_routes, shared_engine()};

  Answered say(const std::string& fields, const std::string& text = kCloudText) {
    return bench.ask(
        json_request("/v1/tts", R"({"seed":7,"text":")" + text + '"' + testing::with_length(fields)));
  }
};

TEST_F(FishCloud, BitratesOfTheCloudApi) {
  const std::string text = kCloudText + " " + kCloudText + " " + kCloudText;
  const auto bytes = [&](const std::string& fields) {
    const Answered answered = say(fields, text);
    EXPECT_EQ(answered.status, 200) << answered.body();
    return static_cast<double>(answered.body().size());
  };
  EXPECT_NEAR(bytes(R"("format":"mp3","mp3_bitrate":128)") / bytes(R"("format":"mp3","mp3_bitrate":64)"), 2,
              0.2);
  EXPECT_GT(bytes(R"("format":"opus","opus_bitrate":64)"),
            1.5 * bytes(R"("format":"opus","opus_bitrate":24)"));
  EXPECT_EQ(bytes(R"("format":"opus","opus_bitrate":-1000)"), bytes(R"("format":"opus")"));
  EXPECT_EQ(say(R"("format":"mp3","mp3_bitrate":65)").status, 422);
}

// What Fish Audio's packages for Node send: `model` (fish-audio, always), `developer-id` (fish-audio-sdk).
TEST_F(FishCloud, ClientsOfTheHostedServiceGetStreams) {
  const auto hosted = [&](const Headers& headers, const std::string& fields) {
    Request request =
        json_request("/v1/tts", R"({"seed":7,"text":")" + kCloudText + '"' + testing::with_length(fields));
    for (const auto& [name, value] : headers) request.headers.add(name, value);
    return bench.ask(request);
  };
  const std::string mp3 = say(R"("streaming":true,"format":"mp3")").body();
  for (const Headers& headers : {Headers{{"model", "s1"}}, Headers{{"Model", "speech-1.6"}},
                                 Headers{{"developer-id", "6322"}}, Headers{{"model", "s2-pro"}}}) {
    const Answered answered = hosted(headers, "");
    EXPECT_EQ(answered.status, 200) << answered.body();
    EXPECT_TRUE(answered.streamed);
    EXPECT_EQ(answered.content_type, "audio/mpeg");
    EXPECT_EQ(answered.header("Content-Disposition"), "attachment; filename=audio.mp3");
    EXPECT_TRUE(answered.body() == mp3);
  }
  const Headers s1 = {{"model", "s1"}};
  const Answered wav = hosted(s1, R"("format":"wav")");
  EXPECT_TRUE(wav.streamed);
  EXPECT_TRUE(wav.body().starts_with("RIFF")) << "it is written into a file";
  EXPECT_FALSE(hosted(s1, R"("streaming":false)").streamed) << "what the body says counts";
  EXPECT_EQ(hosted(s1, R"("format":"opus")").content_type, "audio/ogg");
  EXPECT_FALSE(say("").streamed) << "as ever without the headers";
  EXPECT_EQ(say("").content_type, "audio/wav");
  const Answered unknown = hosted({{"model", "wibble"}}, "");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_NE(text_at(body_value(unknown), {"message"}).find("model"), std::string::npos);
}

}  // namespace
}  // namespace shoal::server
