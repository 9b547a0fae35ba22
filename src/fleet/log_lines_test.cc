#include "fleet/log_lines.h"

#include <gmock/gmock.h>

namespace shoal::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LogLines, LinesAreWholeHoweverTheyArrive) {
  const std::string text = "one\n\ntwo\nthree";
  for (size_t step = 1; step <= text.size(); ++step) {
    LogLines lines;
    std::vector<std::string> all;
    for (size_t at = 0; at < text.size(); at += step)
      for (const std::string& line : lines.add(std::string_view(text).substr(at, step))) all.push_back(line);
    EXPECT_THAT(all, ElementsAre("one", "", "two")) << step;
    EXPECT_EQ(lines.last(), "two");
    EXPECT_THAT(lines.finish(), ElementsAre("three"));
    EXPECT_THAT(lines.finish(), IsEmpty());
  }
}

TEST(LogLines, AnEndlessLineIsCut) {
  LogLines lines;
  const std::string endless(2 * LogLines::kLongest + 1, 'x');
  const std::string part(LogLines::kLongest, 'x');
  EXPECT_THAT(lines.add(endless), ElementsAre(part, part));
  EXPECT_THAT(lines.finish(), ElementsAre("x"));
}

TEST(LogLines, TheNameComesFirstAndJsonStaysJson) {
  EXPECT_EQ(named_line("w1", "listening"), "w1 | listening");
  EXPECT_EQ(named_line("w1", "{\"level\":\"info\"}"), "{\"worker\":\"w1\",\"level\":\"info\"}");
  EXPECT_EQ(named_line("w1", "{\"level\":\"in"), "w1 | {\"level\":\"in");
  EXPECT_EQ(named_line("w1", "{}"), "w1 | {}");
}

}  // namespace
}  // namespace shoal::fleet
