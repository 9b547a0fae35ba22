#include "models/kokoro/voices.h"

#include <cmath>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "base/log.h"
#include "base/temporary_folder_testing.h"
#include "models/kokoro/fixtures_testing.h"
#include "models/kokoro/voice_testing.h"

namespace shoal::kokoro {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using weights::code_of;
using weights::message_of;

// af_one and bm_two in files of their own; af_one (another one), ef_three and ef_four in an archive.
class VoicesFolder : public testing::Test {
 protected:
  VoicesFolder() {
    folder_.write("af_one.pt", tensor_voice(one_));
    folder_.write("bm_two.bin", raw_voice(two_));
    folder_.write("a-first.bin", npz_voices({{"af_one", three_}, {"ef_three", three_}, {"ef_four", one_}}));
    folder_.write("readme.md", "voices");
    folder_.write(".hidden.pt", "x");
    std::filesystem::create_directory(folder_.path() + "/af_folder.pt");
  }
  std::vector<float> mean(const VoicePack& a, double share_a, const VoicePack& b, double share_b) {
    std::vector<float> values;
    for (size_t i = 0; i < a.values().size(); ++i)
      values.push_back(static_cast<float>(share_a * a.values()[i] + share_b * b.values()[i]));
    return values;
  }

  const VoicePack one_ = VoicePack::random(1), two_ = VoicePack::random(2), three_ = VoicePack::random(3);
  TemporaryFolder folder_;
};

TEST_F(VoicesFolder, ListsEveryVoiceOnceSorted) {
  const Voices voices(folder_.path());
  EXPECT_THAT(voices.names(), ElementsAre("af_one", "bm_two", "ef_four", "ef_three"));
  EXPECT_TRUE(voices.contains("ef_four"));
  EXPECT_FALSE(voices.contains("a-first"));
  EXPECT_EQ(code_of([&] { Voices(folder_.path() + "/none"); }), ErrorCode::not_found);
  EXPECT_TRUE(Voices(folder_.path() + "/af_folder.pt").names().empty());
}

TEST_F(VoicesFolder, ASingleVoiceFileTakesPrecedenceOverAnArchive) {
  const Voices voices(folder_.path());
  EXPECT_EQ(values_of(*voices.get("af_one").pack), values_of(one_));
  EXPECT_EQ(values_of(*voices.get("bm_two").pack), values_of(two_));
  EXPECT_EQ(values_of(*voices.get("ef_three").pack), values_of(three_));
}

TEST_F(VoicesFolder, AMixIsAWeightedSum) {
  const Voices voices(folder_.path());
  const auto expect_near = [](const VoicePack& pack, const std::vector<float>& want) {
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(pack.values()[i], want[i], 1e-7) << i;
  };
  expect_near(*voices.get("af_one,bm_two").pack, mean(one_, 0.5, two_, 0.5));
  expect_near(*voices.get("af_one(3)+bm_two").pack, mean(one_, 0.75, two_, 0.25));
  expect_near(*voices.get("af_one(2)-bm_two(0.5)").pack, mean(one_, 0.8, two_, -0.2));
  EXPECT_EQ(values_of(*voices.get("bm_two + af_one").pack),
            values_of(*voices.get("af_one(2)+bm_two(2)").pack));
}

TEST_F(VoicesFolder, AMixIsComputedOnceAndHasTheTraitsOfItsFirstVoice) {
  const Voices voices(folder_.path());
  const Voice mix = voices.get("bm_two(2)+af_one");
  EXPECT_EQ(voices.get("af_one(0.5) + bm_two").pack, mix.pack);
  EXPECT_EQ(voices.get("af_one(0.5) + bm_two").key, mix.key);
  EXPECT_NE(voices.get("af_one + bm_two").pack, mix.pack);
  EXPECT_EQ(mix.traits->language, 'b');
  EXPECT_EQ(mix.traits->sex, 'm');
  EXPECT_EQ(voices.get("af_one(2)").pack, voices.get("af_one").pack);
  EXPECT_EQ(voices.get("af_one").key, "af_one");
}

TEST_F(VoicesFolder, TheCacheIsBounded) {
  const Voices voices(folder_.path());
  const std::weak_ptr<const VoicePack> oldest = voices.get("af_one(1)+bm_two(1000)").pack;
  for (size_t i = 2; i < Voices::kCachedPacks + 2; ++i) voices.get(concat("af_one(", i, ")+bm_two(1000)"));
  EXPECT_TRUE(oldest.expired());
  const Voice held = voices.get("af_one(1)+bm_two(1000)");
  for (size_t i = 2; i < Voices::kCachedPacks + 2; ++i) voices.get(concat("af_one(", i, ")+bm_two(999)"));
  EXPECT_EQ(held.pack->values().size(), 510u * 256) << "who holds a pack keeps it";
}

TEST_F(VoicesFolder, BrokenFilesHideNoOtherVoiceAndAreNamedWhenUsed) {
  folder_.write("af_broken.pt", "no voice");
  folder_.write("am_both.pt", "no voice either");
  folder_.write("am_both.bin", raw_voice(two_));
  folder_.write("voices.bin", raw_voice(one_) + raw_voice(two_));
  folder_.write("bad.name.bin", raw_voice(one_));
  std::vector<std::string> remarks;
  set_log_sink([&](LogLevel level, std::string_view message) {
    if (level == LogLevel::warning) remarks.emplace_back(message);
  });
  const Voices voices(folder_.path());
  set_log_sink({});
  EXPECT_THAT(voices.names(), ElementsAre("af_one", "am_both", "bm_two", "ef_four", "ef_three"));
  EXPECT_EQ(remarks.size(), 4u);
  EXPECT_EQ(code_of([&] { voices.get("af_broken"); }), ErrorCode::corrupt_file);
  EXPECT_THAT(message_of([&] { voices.get("af_broken"); }), HasSubstr("af_broken.pt"));
  EXPECT_EQ(code_of([&] { voices.get("voices"); }), ErrorCode::unsupported);
  EXPECT_EQ(code_of([&] { voices.get("nobody"); }), ErrorCode::not_found);
  EXPECT_EQ(values_of(*voices.get("am_both").pack), values_of(two_));
}

TEST_F(VoicesFolder, ARemovedFileIsAnErrorOfItsVoice) {
  const Voices voices(folder_.path());
  std::filesystem::remove(folder_.path() + "/bm_two.bin");
  EXPECT_EQ(code_of([&] { voices.get("bm_two+af_one"); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([&] { voices.get("af_one"); }), std::nullopt);
}

TEST_F(VoicesFolder, EachLanguageHasADefaultVoice) {
  {
    const Voices voices(folder_.path());
    EXPECT_EQ(voices.default_voice('a'), "af_one");
    EXPECT_EQ(voices.default_voice('e'), "ef_four");
    EXPECT_EQ(code_of([&] { voices.default_voice('j'); }), ErrorCode::not_found);
    EXPECT_EQ(code_of([&] { voices.default_voice('x'); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { voices.default_voice('\0'); }), ErrorCode::invalid_argument);
  }
  folder_.write("af_aoede.pt", tensor_voice(two_));
  folder_.write("af_heart.pt", tensor_voice(two_));
  EXPECT_EQ(Voices(folder_.path()).default_voice('a'), "af_heart");
}

TEST_F(VoicesFolder, ManyThreadsMayReadVoices) {
  const Voices voices(folder_.path());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) voices.get(concat("af_one(", 1 + (i + t) % 5, ")+bm_two"));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(voices.get("af_one(3)+bm_two").pack, voices.get("bm_two+af_one(3)").pack);
}

TEST(VoicesFixtures, AreFoundUnderTheirNames) {
  const std::optional<std::string> folder = voices_fixture();
  if (!folder) GTEST_SKIP() << kNoVoices;
  const Voices voices(*folder);
  EXPECT_THAT(voices.names(), ElementsAre("af_tiny", "am_tiny"));
  EXPECT_EQ(voices.default_voice('a'), "af_tiny");
  EXPECT_TRUE(voices.get("af_tiny(2)+am_tiny").pack);
}

}  // namespace
}  // namespace shoal::kokoro
