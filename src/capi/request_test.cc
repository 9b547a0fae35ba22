#include "capi/request.h"

#include <gmock/gmock.h>

#include "capi/capi_testing.h"

namespace shoal::capi {
namespace {

using namespace testing;
using ::testing::HasSubstr;

void set(const Request& request, const char* name, const char* value) {
  shoal_error error = SHOAL_ERROR_INIT;
  EXPECT_EQ(shoal_request_set(request.get(), name, value, &error), SHOAL_OK) << error.message;
}

TEST(CRequest, SetsEveryFieldByItsName) {
  const Request request = made<Request>(shoal_request_new);
  const std::vector<std::pair<const char*, const char*>> values = {{"text", "Grüße."},
                                                                   {"voice", "clara"},
                                                                   {"voices", "0=clara,1=hugo"},
                                                                   {"seed", "18446744073709551615"},
                                                                   {"temperature", "0.25"},
                                                                   {"top_p", "0.5"},
                                                                   {"top_k", "12"},
                                                                   {"repetition_penalty", "1.5"},
                                                                   {"max_new_tokens", "100"},
                                                                   {"chunk_length", "50"},
                                                                   {"normalise", "true"},
                                                                   {"special_tokens", "false"},
                                                                   {"speed", "1.75"},
                                                                   {"volume", "0.5"},
                                                                   {"phonemes", "həlˈoʊ"},
                                                                   {"language", "en-gb"},
                                                                   {"strict_phonemes", "yes"},
                                                                   {"trim_joins", "0"},
                                                                   {"strict", "on"},
                                                                   {"delivery", "whole"},
                                                                   {"timeout_ms", "2500"},
                                                                   {"client", "me"},
                                                                   {"penalise_window_semantics", "true"},
                                                                   {"check_first_frame_end", "true"},
                                                                   {"keep_last_frame_without_end", "true"}};
  const Json fields = json_of(made<Buffer>(shoal_request_fields));
  ASSERT_EQ(fields.as_array().size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(fields.as_array()[i].at("name").as_string(), values[i].first);
    set(request, values[i].first, values[i].second);
  }
  const SpeechRequest& r = request->value;
  EXPECT_EQ(r.text, "Grüße.");
  EXPECT_EQ(r.voice, "clara");
  ASSERT_EQ(r.voices.size(), 2u);
  EXPECT_EQ(r.voices[1].speaker, 1);
  EXPECT_EQ(r.voices[1].voice, "hugo");
  EXPECT_EQ(r.seed, UINT64_MAX);
  EXPECT_EQ(r.temperature, 0.25f);
  EXPECT_EQ(r.top_p, 0.5f);
  EXPECT_EQ(r.top_k, 12);
  EXPECT_EQ(r.repetition_penalty, 1.5f);
  EXPECT_EQ(r.max_new_tokens, 100);
  EXPECT_EQ(r.chunk_length, 50);
  EXPECT_EQ(r.normalise, true);
  EXPECT_EQ(r.special_tokens, false);
  EXPECT_EQ(r.speed, 1.75);
  EXPECT_EQ(r.volume, 0.5f);
  EXPECT_EQ(r.phonemes, "həlˈoʊ");
  EXPECT_EQ(r.language, "en-gb");
  EXPECT_TRUE(r.strict_phonemes);
  EXPECT_FALSE(r.trim_joins);
  EXPECT_TRUE(r.strict);
  EXPECT_EQ(r.delivery, Delivery::whole);
  EXPECT_EQ(r.timeout, std::chrono::milliseconds(2500));
  EXPECT_EQ(r.client, "me");
  EXPECT_TRUE(r.quirks.penalise_window_semantics);
  EXPECT_TRUE(r.quirks.check_first_frame_end);
  EXPECT_TRUE(r.quirks.keep_last_frame_without_end);
}

TEST(CRequest, NullAndTheToldDefaultAreTheDefault) {
  const Request request = made<Request>(shoal_request_new);
  set(request, "seed", "5");
  set(request, "speed", "2");
  set(request, "normalise", "false");
  for (const char* name : {"seed", "speed", "normalise"}) set(request, name, nullptr);
  EXPECT_FALSE(request->value.seed);
  EXPECT_EQ(request->value.speed, 1);
  EXPECT_FALSE(request->value.normalise);
  const Json fields = json_of(made<Buffer>(shoal_request_fields));
  for (const Json& field : fields.as_array())
    if (const Json& value = field.at("default"); value.is_string())
      set(request, field.at("name").as_string().c_str(), value.as_string().c_str());
  EXPECT_EQ(request->value.max_new_tokens, SpeechRequest{}.max_new_tokens);
  EXPECT_EQ(request->value.delivery, Delivery::streaming);
}

TEST(CRequest, NamesTheFieldThatIsWrong) {
  const Request request = made<Request>(shoal_request_new);
  const auto refused = [&](const char* name, const char* value) {
    shoal_error error = SHOAL_ERROR_INIT;
    EXPECT_EQ(shoal_request_set(request.get(), name, value, &error), SHOAL_INVALID_ARGUMENT);
    return std::string(error.message);
  };
  EXPECT_EQ(refused("tempo", "2"), "requests have no \"tempo\"; did you mean \"text\"?");
  EXPECT_EQ(refused("temperature", "warm"), "temperature: expected a number, got \"warm\"");
  EXPECT_THAT(refused("seed", "-1"), HasSubstr("seed: expected an integer from 0"));
  EXPECT_THAT(refused("seed", ""), HasSubstr("seed: expected"));
  EXPECT_THAT(refused("top_k", "3000000000"), HasSubstr("top_k: expected an integer of 32 bits"));
  EXPECT_THAT(refused("max_new_tokens", "99999999999999999999"), HasSubstr("an integer of 64 bits"));
  EXPECT_THAT(refused("strict", "perhaps"), HasSubstr("strict: expected true or false"));
  EXPECT_THAT(refused("voices", "clara"), HasSubstr("voices: expected NUMBER=VOICE"));
  EXPECT_THAT(refused("delivery", "soon"), HasSubstr("delivery: expected streaming or whole"));
}

TEST(CRequest, IsCheckedWithoutLoadingItsModel) {
  const std::string model = tiny_settings()[0].second;
  const Request request = short_request();
  EXPECT_EQ(text_of(made<Buffer>(shoal_request_check, request.get(), model.c_str())), "[]");
  set(request, "language", "en-us");
  EXPECT_EQ(json_of(made<Buffer>(shoal_request_check, request.get(), model.c_str())).as_array().size(), 1U);
  EXPECT_EQ(shoal_request_check(request.get(), model.c_str(), nullptr, nullptr), SHOAL_OK);
  set(request, "strict", "true");
  shoal_error error = SHOAL_ERROR_INIT;
  EXPECT_EQ(shoal_request_check(request.get(), model.c_str(), nullptr, &error), SHOAL_UNSUPPORTED);
  EXPECT_THAT(error.message, HasSubstr("language"));
}

}  // namespace
}  // namespace shoal::capi
