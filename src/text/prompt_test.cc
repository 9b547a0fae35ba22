#include "text/prompt.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/parity/text_parity.h"
#include "text/fixtures_testing.h"

namespace shoal::text {
namespace {

using parity::check_prompts;
using parity::check_splits;

TEST(S1Prompt, EqualsTheReferencePrompts) { check_prompts(fixture("set_a")); }
TEST(S2Prompt, EqualsTheReferencePrompts) { check_prompts(fixture("set_s2")); }
TEST(S2Turns, EqualTheReference) { check_splits(fixture("set_s2")); }

TEST(S1Prompt, ThePolicyAffectsOnlySpecialTokens) {
  const auto tokenizer = load_s1_fixture();
  const std::vector<int32_t> codes = {3, 1, 31, 0};
  const ReferenceCodes reference{"It's a test (excited).", codes.data(), 2};
  const auto prompt = [&](SpecialTokens policy) {
    return build_s1_prompt(*tokenizer, 2, {&reference, 1}, "\u4F60\u597D <|speaker:1|>", policy).values;
  };
  EXPECT_EQ(prompt(SpecialTokens::recognise), prompt(SpecialTokens::as_text));
}

TEST(S1Prompt, ATypedEndTokenEndsNothingUnlessAllowed) {
  const auto tokenizer = load_s1_fixture();
  const auto ends = [&](SpecialTokens policy) {
    const PromptColumns prompt = build_s1_prompt(*tokenizer, 2, {}, "a<|im_end|>b", policy);
    int count = 0;
    for (size_t i = 0; i < prompt.values.size(); i += 3) count += prompt.values[i] == tokenizer->im_end();
    return count;
  };
  EXPECT_EQ(ends(SpecialTokens::recognise), 1);
  EXPECT_EQ(ends(SpecialTokens::as_text), 0);
}

TEST(S1Prompt, BadCodesAreNamed) {
  const auto tokenizer = load_s1_fixture();  // 32 semantic tokens
  const auto message_of = [&](std::vector<int32_t> codes) -> std::string {
    const ReferenceCodes reference{"x", codes.data(), 2};
    try {
      build_s1_prompt(*tokenizer, 2, {&reference, 1}, "y", SpecialTokens::as_text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.message();
    }
    return "";
  };
  EXPECT_EQ(message_of({0, 99, 31, 5}), "");
  EXPECT_EQ(message_of({0, 0, 32, 5}), "reference codes: frame 1, codebook 0: code 32, expected 0 to 31");
  EXPECT_EQ(message_of({0, -1, 0, 0}), "reference codes: frame 0, codebook 1: code -1, expected 0 or more");
}

TEST(S2Prompt, AReferenceStandsUnderItsSpeakerUnlessItsTextHasTags) {
  const auto tokenizer = load_s2_fixture();
  const std::vector<int32_t> codes = {3, 1};
  const auto prompt = [&](std::initializer_list<std::optional<int>> speakers, const std::string& first) {
    std::vector<ReferenceCodes> references;
    for (const auto& speaker : speakers)
      references.push_back({references.empty() ? first : "Other words.", codes.data(), 1, speaker});
    return build_s2_prompt(*tokenizer, 2, references, {}, "<|speaker:1|>Hi.", SpecialTokens::as_text).values;
  };
  EXPECT_EQ(prompt({0, 1}, "Words."), prompt({{}, {}}, "Words."));  // by place, as the official code
  EXPECT_EQ(prompt({4, 1}, "Words."), prompt({{}, 1}, "<|speaker:4|>Words."));
  EXPECT_NE(prompt({4, 1}, "Words."), prompt({0, 1}, "Words."));
  EXPECT_EQ(prompt({4, 1}, "<|speaker:2|>Words."), prompt({2, 1}, "Words."));
}

TEST(S2Turns, GroupsKeepBothLimitsAndEveryTurn) {
  const std::vector<std::string> turns = {"aaaa", "bb", "c", "dddddddd", "e", "f", "g", "h", "i", "j"};
  EXPECT_EQ(group_s2_turns(turns, 7),
            (std::vector<std::string>{"aaaa\nbb\nc", "dddddddd", "e\nf\ng\nh\ni", "j"}));
  EXPECT_EQ(group_s2_turns(turns, 7, 2),
            (std::vector<std::string>{"aaaa\nbb", "c", "dddddddd", "e\nf", "g\nh", "i\nj"}));
  EXPECT_TRUE(group_s2_turns({}, 7).empty());
}

TEST(S2Turns, OnlyWholeTagsCount) {
  using Turns = std::vector<std::string>;
  EXPECT_EQ(split_s2_turns("<|speaker:|>a<|speaker:x|>b<|speaker:1|c"), Turns{});
  EXPECT_EQ(split_s2_turns("<|speaker:<|speaker:12|>\u3000a\u3000"), Turns{"<|speaker:12|>\u3000a"});
  EXPECT_EQ(split_s2_turns("<|speaker:123"), Turns{});
}

}  // namespace
}  // namespace shoal::text
