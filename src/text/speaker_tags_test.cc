#include "text/speaker_tags.h"

#include <gtest/gtest.h>
#include <limits>
#include <string>

namespace shoal::text {
namespace {

using Speakers = std::vector<int>;

TEST(SpeakerTags, AreFoundWithTheirPlaceAndNumber) {
  const std::string text = "Hm. <|speaker:12|>Yes.<|speaker:0|>No.";
  const auto first = find_speaker_tag(text);
  ASSERT_TRUE(first);
  EXPECT_EQ(text.substr(first->begin, first->end - first->begin), "<|speaker:12|>");
  EXPECT_EQ(first->speaker, 12);
  const auto second = find_speaker_tag(text, first->end);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->speaker, 0);
  EXPECT_FALSE(find_speaker_tag(text, second->end));
}

TEST(SpeakerTags, WhatIsNotWholeIsText) {
  for (const char* text : {"", "<|speaker:", "<|speaker:1", "<|speaker:1|", "<|speaker:|>", "<|speaker:-1|>",
                           "<|speaker: 1|>", "<|Speaker:1|>", "<|speaker:1>", "<|speaker:1<|speaker:"})
    EXPECT_TRUE(speakers_of(text).empty()) << text;
  EXPECT_EQ(speakers_of("<|speaker:1<|speaker:2|>"), Speakers{2});
}

TEST(SpeakerTags, EachSpeakerIsListedOnce) {
  EXPECT_EQ(speakers_of("<|speaker:3|>a<|speaker:0|>b<|speaker:3|>c<|speaker:003|>d"), (Speakers{3, 0}));
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += "<|speaker:" + std::to_string(i % 1000) + "|>";
  EXPECT_EQ(speakers_of(many).size(), 1000u);
}

TEST(SpeakerTags, ANumberBeyondIntIsItsLargest) {
  EXPECT_EQ(speakers_of("<|speaker:99999999999999999999|>"), Speakers{std::numeric_limits<int>::max()});
}

}  // namespace
}  // namespace shoal::text
