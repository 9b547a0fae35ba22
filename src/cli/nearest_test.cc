#include "cli/nearest.h"

#include <gtest/gtest.h>

namespace shoal::cli {
namespace {

// The definition, as a recursion.
size_t distance_by_definition(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  const auto without = [](std::string_view text, size_t letters) { return text.substr(letters); };
  size_t least = distance_by_definition(without(a, 1), without(b, 1)) + (a[0] == b[0] ? 0 : 1);
  least = std::min(least, distance_by_definition(without(a, 1), b) + 1);
  least = std::min(least, distance_by_definition(a, without(b, 1)) + 1);
  if (a.size() > 1 && b.size() > 1 && a[0] == b[1] && a[1] == b[0])
    least = std::min(least, distance_by_definition(without(a, 2), without(b, 2)) + 1);
  return least;
}

TEST(Nearest, DistancesAreThoseOfTheDefinition) {
  std::vector<std::string> words = {""};
  for (size_t i = 0; words.size() < 200; ++i)
    for (const char letter : {'a', 'b', 'c'}) words.push_back(words[i] + letter);
  for (size_t i = 0; i < words.size(); i += 7)
    for (const std::string& other : words)
      ASSERT_EQ(spelling_distance(words[i], other), distance_by_definition(words[i], other))
          << words[i] << " and " << other;
}

TEST(Nearest, FindsMisspellingsAndBeginnings) {
  const std::vector<std::string> names = {"say", "serve", "--speed", "--seed", "--version", "clara", "edgar"};
  EXPECT_EQ(nearest_name("--verison", names), "--version");
  EXPECT_EQ(nearest_name("--sped", names), "--speed");
  EXPECT_EQ(nearest_name("sya", names), "say");
  EXPECT_EQ(nearest_name("server", names), "serve");
  EXPECT_EQ(nearest_name("CLARA", names), "clara");
  EXPECT_EQ(nearest_name("--vers", names), "--version");
  EXPECT_EQ(nearest_name("--speed-of-voice", names), "--speed");
}

TEST(Nearest, OffersNothingForOtherWords) {
  const std::vector<std::string> names = {"say", "serve", "clara", "--speed"};
  for (const std::string name : {"", "x", "hello", "nobody", "--listen", "Hello there, how are you?"})
    EXPECT_EQ(nearest_name(name, names), "") << name;
  EXPECT_EQ(nearest_name(std::string(1 << 20, 'a'), {std::string(1 << 20, 'a')}), "");
  EXPECT_EQ(nearest_name("say", {}), "");
  EXPECT_EQ(did_you_mean("hello", names), "");
  EXPECT_EQ(did_you_mean("srve", names, "`"), "; did you mean `serve`?");
}

}  // namespace
}  // namespace shoal::cli
