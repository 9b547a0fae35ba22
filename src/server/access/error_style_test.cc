#include "server/access/error_style.h"

#include <gtest/gtest.h>

#include "server/body/members_testing.h"

namespace shoal::server {
namespace {

using testing::at;
using testing::text_at;

Value told(ErrorStyle style, const Error& error) {
  return read_json(error_response(style, http_error(error), "id-1").body);
}

TEST(HttpError, EveryCodeHasItsStatus) {
  const std::pair<ErrorCode, int> statuses[] = {{ErrorCode::invalid_argument, 400},
                                                {ErrorCode::not_found, 404},
                                                {ErrorCode::already_exists, 409},
                                                {ErrorCode::unsupported, 400},
                                                {ErrorCode::corrupt_file, 400},
                                                {ErrorCode::too_large, 413},
                                                {ErrorCode::cancelled, 499},
                                                {ErrorCode::deadline_exceeded, 504},
                                                {ErrorCode::resource_exhausted, 429},
                                                {ErrorCode::unavailable, 503},
                                                {ErrorCode::io, 500},
                                                {ErrorCode::internal, 500}};
  for (const auto& [code, status] : statuses) EXPECT_EQ(http_error(Error(code, "x")).status, status);
}

TEST(HttpError, OverloadSaysWhenToTryAgain) {
  for (const ErrorCode code : {ErrorCode::resource_exhausted, ErrorCode::unavailable}) {
    const Response response = error_response(ErrorStyle::openai, http_error(Error(code, "full")), "id");
    const std::string* after = response.headers.find("retry-after");
    ASSERT_TRUE(after);
    EXPECT_GE(std::stoi(*after), 1);
  }
  EXPECT_FALSE(error_response(ErrorStyle::plain, http_error(Error(ErrorCode::too_large, "x")), "id")
                   .headers.find("Retry-After"));
}

TEST(HttpError, InternalErrorsRevealNothing) {
  for (const ErrorCode code : {ErrorCode::io, ErrorCode::internal})
    for (const ErrorStyle style : {ErrorStyle::openai, ErrorStyle::fish, ErrorStyle::plain}) {
      const Response response = error_response(style, http_error(Error(code, "/srv/secret: line 7")), "id");
      EXPECT_EQ(response.status, 500);
      EXPECT_EQ(response.body.find("secret"), std::string::npos) << response.body;
      EXPECT_NE(response.body.find("\"id\""), std::string::npos) << response.body;
    }
}

TEST(HttpError, ErrorsNameTheField) {
  EXPECT_EQ(http_error(BodyError(ErrorCode::invalid_argument, "references[1].audio", "x")).param,
            "references[1].audio");
  EXPECT_EQ(http_error(Error(ErrorCode::invalid_argument, "chunk_length: expected 0")).param, "chunk_length");
  EXPECT_EQ(http_error(Error(ErrorCode::too_large, "text: 300000 bytes")).param, "text");
  EXPECT_EQ(http_error(Error(ErrorCode::invalid_argument, "reference 1: is silence")).param,
            "references[0].audio");
  EXPECT_EQ(http_error(Error(ErrorCode::corrupt_file, "reference 12: is no sound")).param,
            "references[11].audio");
  EXPECT_EQ(http_error(Error(ErrorCode::too_large, "reference 2: its transcript has 9 bytes")).param,
            "references[1].text");
  for (const char* none : {"reference 0: x", "reference -1: x", "reference 1", "reference one: x",
                           "reference 99999999999999999999: x", "reference codes: frame 1"})
    EXPECT_EQ(http_error(Error(ErrorCode::invalid_argument, none)).param, "") << none;
  EXPECT_EQ(http_error(Error(ErrorCode::unavailable, "engine: stopped")).param, "");
}

TEST(ErrorResponse, KServeIsOneSentence) {
  const Value body =
      told(ErrorStyle::kserve, BodyError(ErrorCode::invalid_argument, "parameters.speed", "too fast"));
  EXPECT_EQ(write_json(body), R"({"error":"parameters.speed: too fast"})");
}

TEST(ErrorResponse, OpenAi) {
  const Value body = told(ErrorStyle::openai, BodyError(ErrorCode::invalid_argument, "speed", "too fast"));
  EXPECT_EQ(text_at(body, {"error", "message"}), "speed: too fast");
  EXPECT_EQ(text_at(body, {"error", "type"}), "invalid_request_error");
  EXPECT_EQ(text_at(body, {"error", "param"}), "speed");
  EXPECT_EQ(text_at(body, {"error", "code"}), "invalid_argument");
  EXPECT_EQ(text_at(told(ErrorStyle::openai, Error(ErrorCode::internal, "x")), {"error", "param"}), "(null)");
  EXPECT_EQ(text_at(told(ErrorStyle::openai, Error(ErrorCode::internal, "x")), {"error", "type"}),
            "server_error");
  EXPECT_EQ(text_at(told(ErrorStyle::openai, Error(ErrorCode::resource_exhausted, "x")), {"error", "type"}),
            "rate_limit_error");
  EXPECT_EQ(
      text_at(told(ErrorStyle::openai, BodyError(ErrorCode::not_found, "model", "x")), {"error", "code"}),
      "model_not_found");
}

TEST(ErrorResponse, Fish) {
  const auto response_to = [](const Error& error) {
    return error_response(ErrorStyle::fish, http_error(error), "id-1");
  };
  const Response field = response_to(BodyError(ErrorCode::invalid_argument, "top_p", "expected a number"));
  EXPECT_EQ(field.status, 422);
  EXPECT_EQ(at(read_json(field.body), {"statusCode"}), Value{int64_t{422}});
  EXPECT_EQ(text_at(read_json(field.body), {"message"}), "top_p: expected a number");
  EXPECT_EQ(text_at(read_json(field.body), {"error"}), std::string(phrase_of(422)));
  EXPECT_EQ(response_to(BodyError(ErrorCode::invalid_argument, "", "not JSON")).status, 400);
  EXPECT_EQ(response_to(BodyError(ErrorCode::unsupported, "prosody", "no")).status, 400);
  EXPECT_EQ(response_to(Error(ErrorCode::invalid_argument, "text: too long")).status, 400);
  const Response type = response_to(BodyError(ErrorCode::unsupported, "", "Content-Type"));
  EXPECT_EQ(type.status, 415);
  const std::string* accept = type.headers.find("Accept");
  ASSERT_TRUE(accept);
  for (const char* one : {"application/json", "application/msgpack", "multipart/form-data"})
    EXPECT_NE(accept->find(one), std::string::npos);
}

TEST(ErrorResponse, Kokoro) {
  const Value body = told(ErrorStyle::kokoro, BodyError(ErrorCode::invalid_argument, "text", "is required"));
  EXPECT_EQ(text_at(body, {"detail", "error"}), "invalid_argument");
  EXPECT_EQ(text_at(body, {"detail", "message"}), "text: is required");
  EXPECT_EQ(text_at(body, {"detail", "type"}), "invalid_request_error");
  EXPECT_EQ(text_at(body, {"detail", "param"}), "text");
}

TEST(ErrorResponse, Plain) {
  const Value body = told(ErrorStyle::plain, BodyError(ErrorCode::not_found, "voice", "unknown"));
  EXPECT_EQ(text_at(body, {"error", "code"}), "not_found");
  EXPECT_EQ(text_at(body, {"error", "message"}), "voice: unknown");
  EXPECT_EQ(text_at(body, {"error", "request_id"}), "id-1");
}

}  // namespace
}  // namespace shoal::server
