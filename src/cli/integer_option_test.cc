#include "cli/integer_option.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>

#include "base/error.h"

namespace shoal::cli {
namespace {

using testing::ElementsAre;

struct Options {
  CLI::App app{"", "test"};
  uint64_t seed = 42;
  std::optional<int> top_k;
  std::vector<int> batches;

  Options() {
    add_integer(app, "--seed", {}, store_in(seed), "");
    add_integer(app, "--top-k", {0, std::numeric_limits<int>::max()}, store_in(top_k), "");
    add_integers(app, "--batches", {1, 64}, batches, "");
  }
  void parse(std::vector<std::string> arguments) {
    std::reverse(arguments.begin(), arguments.end());
    app.parse(std::move(arguments));
  }
};

std::string refusal(std::vector<std::string> arguments) {
  try {
    Options().parse(std::move(arguments));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.message();
  }
  return "";
}

TEST(IntegerOption, AcceptsNumbersInRange) {
  Options options;
  options.parse({"--seed", "9223372036854775807", "--top-k", "0x10", "--batches", "1,64"});
  EXPECT_EQ(options.seed, uint64_t{9223372036854775807u});
  EXPECT_EQ(options.top_k, 16);
  EXPECT_THAT(options.batches, ElementsAre(1, 64));
  Options untouched;
  untouched.parse({});
  EXPECT_EQ(untouched.seed, 42u);
  EXPECT_EQ(untouched.top_k, std::nullopt);
}

TEST(IntegerOption, OutOfRangeErrorsNameTheRange) {
  const std::string seed = "seed: expected a whole number, 0 to 9223372036854775807, got ";
  for (const char* bad : {"9223372036854775808", "18446744073709551616", "99999999999999999999999", "-1",
                          "-9223372036854775809", "1.5", "1e3", "7x", " 7", "seven"})
    EXPECT_EQ(refusal({"--seed", bad}), seed + '"' + bad + '"');
  EXPECT_EQ(refusal({"--top-k", "4294967297"}),
            "top_k: expected a whole number, 0 to 2147483647, got \"4294967297\"");
  EXPECT_EQ(refusal({"--batches", "1,4294967297"}),
            "batches: expected a whole number, 1 to 64, got \"4294967297\"");
}

}  // namespace
}  // namespace shoal::cli
