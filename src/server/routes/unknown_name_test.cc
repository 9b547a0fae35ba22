#include "server/routes/unknown_name.h"

#include <gtest/gtest.h>
#include <vector>

namespace shoal::server {
namespace {

const std::vector<std::string> kNames = {"clara", "nora", "tts-1-hd"};

TEST(UnknownName, IsReportedWithTheClosestName) {
  EXPECT_EQ(none_called("clra", kNames, "/v1/audio/voices"),
            R"(there is none called "clra"; the nearest is "clara"; see /v1/audio/voices)");
  EXPECT_EQ(none_called("Nora", kNames, ""), R"(there is none called "Nora"; the nearest is "nora")");
  EXPECT_EQ(none_called("tts-1-hdd", kNames, ""),
            R"(there is none called "tts-1-hdd"; the nearest is "tts-1-hd")");
}

TEST(UnknownName, DistantNamesAreNotSuggested) {
  EXPECT_EQ(none_called("somebody else", kNames, "/x"), R"(there is none called "somebody else"; see /x)");
  EXPECT_EQ(none_called("clara", {}, ""), R"(there is none called "clara")");
}

TEST(UnknownName, IsShortAndPrintableInTheError) {
  EXPECT_LT(none_called(std::string(100'000, 'x'), kNames, "").size(), 200u);
  EXPECT_EQ(none_called("a\n\xff", kNames, "").find('\n'), std::string::npos);
}

TEST(UnknownName, IsReadFromTheEnginesErrors) {
  const auto of = [](ErrorCode code, const std::string& message) {
    return unknown_voice_of(Error(code, message)).value_or("(none)");
  };
  EXPECT_EQ(of(ErrorCode::not_found, R"(voice "clra": no clip with a .lab transcript in /x/clra)"), "clra");
  EXPECT_EQ(of(ErrorCode::not_found, R"(voice "af_a+af_b": there is no voice "af_b")"), "af_b");
  EXPECT_EQ(of(ErrorCode::invalid_argument, R"(voice "a/b": expected letters)"), "(none)");
  EXPECT_EQ(of(ErrorCode::not_found, R"(voice ")"), "(none)");
  EXPECT_EQ(of(ErrorCode::not_found, "file: not there"), "(none)");
}

}  // namespace
}  // namespace shoal::server
