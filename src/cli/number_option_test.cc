#include "cli/number_option.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>

#include "base/error.h"

namespace shoal::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string message_of(const std::string& text, NumberRange range = {}) {
  try {
    parse_number("speed", text, range);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.message();
  }
}

TEST(NumberOption, TakesDecimalNumbersAndNothingElse) {
  EXPECT_EQ(parse_number("speed", "1.5"), 1.5);
  EXPECT_EQ(parse_number("speed", "-2e-3"), -2e-3);
  EXPECT_EQ(parse_number("speed", "+4", {0, 4}), 4);
  for (const std::string text : {"", " 1", "1 ", "1.5x", "fast", "0x10", "nan", "--1", "+-1", "++1", "1e999"})
    EXPECT_THAT(message_of(text), HasSubstr("speed: expected a number, such as 1.5, got \"" + text + "\""));
}

TEST(NumberOption, SaysTheRangeAndTheDecimalSign) {
  EXPECT_EQ(message_of("9", {0.25, 4}), "speed: expected a number, 0.25 to 4, got \"9\"");
  EXPECT_EQ(message_of("nan", {0.25, 4}), "speed: expected a number, 0.25 to 4, got \"nan\"");
  EXPECT_THAT(message_of("1,5"), HasSubstr("the decimal sign is a point"));
}

TEST(NumberOption, StoresNumbersListsAndChoices) {
  CLI::App app("A program", "shoal");
  float volume = 1;
  std::optional<double> rate;
  std::vector<double> rates;
  std::string mode;
  add_number(app, "--volume", {}, store_number_in(volume), "");
  add_number(app, "--rate", {}, store_number_in(rate), "");
  add_numbers(app, "--rates", rates, "");
  app.add_option("--mode", mode)->check(one_of({"auto", "on", "off"}));
  app.parse("--volume 2.5 --rate 0.1 --rates 1,2.5 --mode on");
  EXPECT_EQ(volume, 2.5f);
  EXPECT_EQ(rate, 0.1);
  EXPECT_THAT(rates, ElementsAre(1, 2.5));
  EXPECT_THROW(app.parse("--rates 1,x"), Error);
  try {
    app.parse("--mode offf");
    FAIL() << "not a choice";
  } catch (const CLI::ValidationError& error) {
    EXPECT_STREQ(error.what(), "--mode: expected auto, on or off, got \"offf\"; did you mean off?");
  }
  EXPECT_THAT(app.get_option("--mode")->get_type_name(), HasSubstr("{auto,on,off}")) << "completion reads it";
}

}  // namespace
}  // namespace shoal::cli
