#include "text/tokenizer.h"

#include <ctime>
#include <gtest/gtest.h>
#include <thread>

#include "base/error.h"
#include "base/temporary_folder_testing.h"
#include "tests/parity/fish_goldens.h"
#include "tests/parity/text_parity.h"
#include "text/fixtures_testing.h"

namespace shoal::text {
namespace {

class BothTokenizers : public testing::TestWithParam<const char*> {
 protected:
  const parity::FishGoldens goldens_ = parity::FishGoldens::open(fixture(GetParam()));
  const Tokenizer& tokenizer_ = *goldens_.tokenizer;
};
INSTANTIATE_TEST_SUITE_P(, BothTokenizers, testing::Values("set_a", "set_s2"));

// Parsed JSON takes forty times its text: the file's size decides, before it is read.
TEST(Tokenizer, FilesTooLargeAreRefusedUnread) {
  const TemporaryFolder folder;
  const auto code_of = [&](const std::string& tokenizer, const std::string& special_tokens) {
    try {
      load_tokenizer(tokenizer, special_tokens);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  const auto hole = [&](const std::string& name, uintmax_t bytes) {
    const std::string path = folder.write(name, "");
    std::filesystem::resize_file(path, bytes);
    return path;
  };
  constexpr uintmax_t kMiB = 1 << 20;
  EXPECT_EQ(code_of(hole("tokenizer.json", 12 * kMiB), ""), ErrorCode::corrupt_file) << "as large as S2's";
  EXPECT_EQ(code_of(hole("tokenizer.json", 24 * kMiB + 1), ""), ErrorCode::too_large);
  EXPECT_EQ(code_of(hole("tokenizer.tiktoken", 8 * kMiB + 1), ""), ErrorCode::too_large);
  EXPECT_EQ(code_of(fixture("set_a/tokenizer.tiktoken"), hole("special_tokens.json", 2 * kMiB + 1)),
            ErrorCode::too_large);
}

TEST_P(BothTokenizers, IdsEqualTheReference) { parity::check_tokenizer(fixture(GetParam())); }

TEST_P(BothTokenizers, KnowsTheSpecialTokens) {
  EXPECT_EQ(tokenizer_.im_end(), tokenizer_.special_id("<|im_end|>"));
  EXPECT_EQ(tokenizer_.vocab_size(), tokenizer_.semantic_end() + 1);
  EXPECT_EQ(tokenizer_.special_id("<|speaker:0|>"), std::nullopt);
}

TEST_P(BothTokenizers, DecodingRestoresTheText) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    // The S2 tokenizer normalises, so its text is compared after a first round.
    std::string text = random_text(random, random() % 200);
    for (const SpecialTokens policy : {SpecialTokens::recognise, SpecialTokens::as_text}) {
      if (!goldens_.is_s1) text = tokenizer_.decode(tokenizer_.encode(text, policy));
      ASSERT_EQ(tokenizer_.decode(tokenizer_.encode(text, policy)), text) << "seed " << seed;
    }
  }
}

TEST_P(BothTokenizers, AsTextNeverGivesASpecialId) {
  const Json::Object& specials = goldens_.document.at("special_ids").as_object();
  int64_t lowest = tokenizer_.semantic_begin();
  for (const auto& [_, id] : specials) lowest = std::min(lowest, id.as_integer());
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    std::string text;
    for (int i = 0; i < 20; ++i) {
      text += random_text(random, random() % 4);
      text += random() % 2 ? specials[random() % specials.size()].first
                           : "<|semantic:" + std::to_string(random() % 40) + "|>";
    }
    for (const int32_t id : tokenizer_.encode(text, SpecialTokens::as_text))
      ASSERT_LT(id, lowest) << "seed " << seed;
  }
}

TEST_P(BothTokenizers, InvalidUtf8IsTheCallersFault) {
  try {
    tokenizer_.encode("abc\xff", SpecialTokens::recognise);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_EQ(error.message(), "text: not valid UTF-8 (byte 3)");
  }
  EXPECT_THROW(tokenizer_.decode(std::vector<int32_t>{1 << 20}), Error);
  EXPECT_THROW(tokenizer_.decode(std::vector<int32_t>{-1}), Error);
}

TEST_P(BothTokenizers, OneTokenizerServesManyThreads) {
  std::mt19937 random(7);
  const std::string text = random_text(random, 5000);
  const std::vector<int32_t> alone = tokenizer_.encode(text, SpecialTokens::recognise);
  std::vector<std::vector<int32_t>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results)
    threads.emplace_back([&] { result = tokenizer_.encode(text, SpecialTokens::recognise); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, alone);
}

// Texts that make a careless implementation quadratic: seconds would become minutes; a tenth of a second is
// typical.
TEST_P(BothTokenizers, AMegabyteOfAnythingIsQuick) {
  std::mt19937 random(11);
  std::string tags, accents = "a";
  while (tags.size() < 1'000'000) tags += "<|im_en";
  while (accents.size() < 1'000'000) accents += "\u0301\u0323";
  const std::string blanks(1'000'000, ' ');
  for (const std::string& text : {std::string(1'000'000, 'e'), blanks, blanks + "?!x",
                                  std::string(1'000'000, '\n'), std::string(1'000'000, '!'),
                                  std::string(1'000'000, '<'), tags, accents, random_text(random, 600'000)}) {
    const std::clock_t begin = std::clock();  // others may compute, too
    EXPECT_FALSE(tokenizer_.encode(text, SpecialTokens::recognise).empty());
    EXPECT_LT(std::clock() - begin, 10 * CLOCKS_PER_SEC) << text.substr(0, 16);
  }
}

TEST(S1Tokenizer, TextIsCutAfter400000Characters) {
  const auto tokenizer = load_s1_fixture();
  // The reference cuts before it searches special tokens: one across the cut is ordinary text.
  const std::string long_text(399'996, '0');
  const std::vector<int32_t> across = tokenizer->encode(long_text + "<|im_end|>", SpecialTokens::recognise);
  EXPECT_NE(across.back(), tokenizer->im_end());
  const std::vector<int32_t> after =
      tokenizer->encode(long_text + "0000<|im_end|>", SpecialTokens::recognise);
  EXPECT_EQ(after.size(), 400'001u);
  EXPECT_EQ(after.back(), tokenizer->im_end());
}

TEST(S1Tokenizer, WithoutAListTheBuiltInSpecialTokensAreUsed) {
  const auto tokenizer = load_tokenizer(fixture("set_a/tokenizer.tiktoken"), "");
  EXPECT_EQ(tokenizer->special_id("<|begin_of_text|>"), 512);
  EXPECT_EQ(tokenizer->im_end(), 512 + 4);  // position in the table of special tokens
  EXPECT_EQ(tokenizer->special_id("<|interleave|>"), 512 + 11);
  EXPECT_EQ(tokenizer->semantic_begin(), 512 + 15);
  EXPECT_EQ(tokenizer->semantic_end(), 512 + 15 + 4095);
}

}  // namespace
}  // namespace shoal::text
