// ElevenLabs' API over HTTP: the engine's sound, every field, errors, lists.
#include <random>

#include "base/base64.h"
#include "server/routes/eleven_lists.h"
#include "server/routes/speech_testing.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::get_request;
using testing::json_request;
using testing::RouteBench;
using testing::shared_engine;
using testing::sound_of;
using testing::text_at;

class ElevenLabs : public ::testing::Test {
 protected:
  RouteBench bench{eleven_routes, shared_engine()};

  Answered say(const std::string& fields, std::vector<std::pair<std::string, std::string>> query = {},
               const std::string& voice = "anna", const std::string& way = "") {
    Request request = json_request("/v1/text-to-speech/" + voice + way,
                                   R"({"text":"Hm.","seed":7)" + (fields.empty() ? "" : "," + fields) + "}");
    request.query = std::move(query);
    return bench.ask(std::move(request));
  }
  static SpeechRequest wanted() {
    SpeechRequest request;
    request.text = "Hm.";
    request.voice = "anna";
    request.seed = 7;
    request.special_tokens = false;
    return request;
  }
  // The status word, or the field of a 422.
  static std::string refusal(const Answered& answered) {
    const Value body = testing::body_value(answered);
    const auto* list = body.find("detail")->as<Value::Array>();
    if (!list) return text_at(body, {"detail", "status"});
    return *(*list)[0].find("loc")->as<Value::Array>()->at(1).as<std::string>();
  }
};

TEST_F(ElevenLabs, SpeaksTheEnginesSoundWholeAndAsAStream) {
  const std::vector<float> sound = sound_of(bench.engine(), wanted());
  for (const auto& [format, hz] :
       {std::pair("pcm_16000", 16000), {"pcm_22050", 22050}, {"pcm_48000", 48000}}) {
    const Answered whole = say("", {{"output_format", format}});
    const Answered stream = say("", {{"output_format", format}}, "anna", "/stream");
    EXPECT_EQ(whole.content_type, "audio/pcm");
    EXPECT_TRUE(!whole.streamed && stream.streamed);
    EXPECT_TRUE(whole.body() == (hz == 16000 ? testing::pcm_of(sound) : testing::pcm_at(sound, 16000, hz)));
    EXPECT_TRUE(stream.body() == whole.body());
  }
  const std::pair<const char*, const char*> types[] = {{"mp3_44100_128", "audio/mpeg"},
                                                       {"wav_24000", "audio/wav"},
                                                       {"opus_48000_32", "audio/ogg"},
                                                       {"ulaw_8000", "audio/basic"},
                                                       {"alaw_8000", "audio/x-alaw-basic"}};
  for (const auto& [format, type] : types) EXPECT_EQ(say("", {{"output_format", format}}).content_type, type);
  EXPECT_EQ(say("").content_type, "audio/mpeg");
  EXPECT_EQ(say("").header("x-shoal-sample-rate"), "44100");
}

TEST_F(ElevenLabs, FieldsReachTheEngineOrAreNamed) {
  const auto pcm = [&](const std::string& fields, const std::string& latency = "0") {
    return say(fields, {{"output_format", "pcm_16000"}, {"optimize_streaming_latency", latency}});
  };
  const auto sounds = [&](SpeechRequest request) {
    return testing::pcm_of(sound_of(bench.engine(), request));
  };
  SpeechRequest fast = wanted(), plain = wanted(), other = wanted();
  fast.speed = 2;
  plain.normalise = false;
  other.seed = 8;
  EXPECT_TRUE(pcm(R"("voice_settings":{"speed":2})").body() == sounds(fast));
  EXPECT_TRUE(pcm(R"("apply_text_normalization":"off")").body() == sounds(plain));
  EXPECT_TRUE(pcm("", "4").body() == sounds(plain));
  for (const char* field :
       {R"("voice_settings":{"stability":0.9})", R"("previous_text":"So.")", R"("next_request_ids":["a"])"})
    EXPECT_NE(pcm(field).header("x-shoal-warnings"), "") << field;
  EXPECT_EQ(
      pcm(R"("voice_settings":{"stability":0.5},"model_id":"eleven_flash_v2_5")").header("x-shoal-warnings"),
      "");
  const std::pair<const char*, const char*> refused[] = {
      {R"("pronunciation_dictionary_locators":[{"pronunciation_dictionary_id":"a"}])", "unsupported"},
      {R"("audio_effects":{"pan":1})", "unsupported"},
      {R"("model_id":"nobody")", "model_not_found"},
      {R"("seed":4294967296)", "seed"},
      {R"("voice_setings":{})", "voice_setings"},
      {R"("voice_settings":{"speed":9})", "voice_settings.speed"}};
  for (const auto& [field, why] : refused) EXPECT_EQ(refusal(pcm(field)), why) << field;
  EXPECT_EQ(refusal(say("", {{"output_format", "mp3_1_2"}})), "output_format");
  EXPECT_EQ(refusal(say("", {{"output_fromat", "pcm_16000"}})), "output_fromat");
  const Answered nobody = say("", {}, "nobody");
  EXPECT_EQ(nobody.status, 404);
  EXPECT_EQ(refusal(nobody), "voice_not_found");
  for (const char* voice : {"default", "nova", "bIHbv24MWmeRgasZH58o"})
    EXPECT_EQ(say("", {}, voice).status, 200);
}

TEST_F(ElevenLabs, TimestampsHoldTheSoundInBase64) {
  const std::string pcm = testing::pcm_of(sound_of(bench.engine(), wanted()));
  const Answered whole = say("", {{"output_format", "pcm_16000"}}, "anna", "/with-timestamps");
  EXPECT_EQ(whole.content_type, "application/json");
  EXPECT_TRUE(from_base64(text_at(testing::body_value(whole), {"audio_base64"})) == pcm);
  EXPECT_TRUE(testing::body_value(whole).find("alignment")->is_null()) << "this voice knows no times";
  const Answered stream = say("", {{"output_format", "pcm_16000"}}, "anna", "/stream/with-timestamps");
  std::string joined;
  for (const std::string& line : stream.pieces)
    joined += from_base64(text_at(read_json(line), {"audio_base64"})).value();
  EXPECT_TRUE(joined == pcm);
}

TEST_F(ElevenLabs, ListsVoicesAndModels) {
  const Value voices = testing::body_value(bench.ask(get_request("/v1/voices")));
  std::string names;
  for (const Value& voice : *voices.find("voices")->as<Value::Array>())
    names += text_at(voice, {"voice_id"}) + " " + text_at(voice, {"category"}) + ";";
  EXPECT_NE(names.find("anna cloned;"), std::string::npos) << names;
  EXPECT_NE(names.find("clara premade;"), std::string::npos) << names;
  EXPECT_EQ(text_at(testing::body_value(bench.ask(get_request("/v1/voices/anna"))), {"voice_id"}), "anna");
  EXPECT_EQ(refusal(bench.ask(get_request("/v1/voices/nobody"))), "voice_not_found");
  RouteBench openai(openai_routes, shared_engine());
  Request request = get_request("/v1/models");
  EXPECT_EQ(text_at(testing::body_value(openai.ask(request)), {"object"}), "list");
  request.headers.add("xi-api-key", "none");
  const Answered theirs = openai.ask(request);
  EXPECT_EQ(text_at((*testing::body_value(theirs).as<Value::Array>())[0], {"model_id"}), "shoal");
  EXPECT_EQ(theirs.header("Vary"), "xi-api-key");
}

// Of each part a value that is right, or one that is wrong and the name that the refusal must have.
struct Part {
  std::string right, wrong, name;
};

TEST_F(ElevenLabs, RandomCallsSpeakOrSayWhatIsWrong) {
  const Part bodies[] = {
      {R"("model_id":"eleven_v3")", R"("model_id":7)", "model_id"},
      {R"("voice_settings":{"speed":1.5,"style":0})", R"("voice_settings":[])", "voice_settings"},
      {R"("apply_text_normalization":"on")", R"("apply_text_normalization":"no")",
       "apply_text_normalization"},
      {R"("previous_text":"a")", R"("audio_effects":{"pan":1})", "audio_effects"},
      {R"("use_pvc_as_ivc":false)", R"("use_pvc_as_icv":false)", "use_pvc_as_icv"},
      {R"("language_code":null)", R"("language_code":[1])", "language_code"}};
  const Part queries[] = {{"pcm_8000", "pcm_7000", "output_format"}, {"ulaw_8000", "", "output_format"}};
  const std::string ways[] = {"", "/stream", "/with-timestamps", "/stream/with-timestamps"};
  std::mt19937 random(20);
  for (int call = 0; call < 200; ++call) {
    std::string fields, wrong;
    for (const Part& part : bodies) {
      if (random() % 3 != 0) continue;
      const bool bad = wrong.empty() && random() % 3 == 0;
      if (bad) wrong = part.name;
      fields += (fields.empty() ? "" : ",") + (bad ? part.wrong : part.right);
    }
    const Part& query = queries[random() % 2];
    const bool bad_query = random() % 4 == 0;
    if (bad_query) wrong = query.name;  // the query is read first
    const Answered answered =
        say(fields, {{"output_format", bad_query ? query.wrong : query.right}}, "anna", ways[random() % 4]);
    SCOPED_TRACE(fields + " " + answered.body().substr(0, 200));
    ASSERT_EQ(answered.status == 200, wrong.empty());
    ASSERT_TRUE(answered.whole);
    if (wrong.empty()) continue;
    ASSERT_TRUE(answered.status == 422 || answered.status == 400);
    ASSERT_NE(answered.body().find(wrong), std::string::npos);
  }
}

}  // namespace
}  // namespace shoal::server
