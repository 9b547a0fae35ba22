#include "bench/engine/workload.h"

#include <algorithm>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "base/error.h"
#include "bench/engine/voices.h"
#include "bench/measure/sentences.h"
#include "bench/measure/texts.h"

namespace shoal::bench {
namespace {

std::vector<ReferenceCodes> voices(int count) {
  std::vector<ReferenceCodes> voices;
  for (int i = 0; i < count; ++i) voices.push_back({.codes = {i}, .text = "x"});
  return voices;
}

// How often each of `count` voices speaks.
std::vector<int> uses(const Workload& workload, int count, int requests) {
  std::vector<int> uses(static_cast<size_t>(count));
  for (int i = 0; i < requests; ++i) {
    const SpeechRequest request = workload.request(static_cast<uint64_t>(i));
    ++uses[static_cast<size_t>(request.encoded_references.at(0).codes.at(0))];
  }
  return uses;
}

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

TEST(Workload, DependsOnlyOnSeedAndIndex) {
  const Workload one({.seed = 4}, {}), same({.seed = 4}, {}), other({.seed = 5}, {});
  EXPECT_EQ(one.request(9).text, same.request(9).text);
  EXPECT_EQ(one.request(9).seed, same.request(9).seed);
  EXPECT_NE(one.request(9).text, one.request(10).text);
  EXPECT_NE(one.request(9).seed, other.request(9).seed);
}

TEST(Workload, EveryRoundSpeaksEverySentenceOnce) {
  const Workload workload({}, {});
  const size_t round = sentences().size();
  for (const size_t first : {size_t{0}, round}) {
    std::multiset<std::string> spoken, all(sentences().begin(), sentences().end());
    for (size_t i = first; i < first + round; ++i) {
      const std::string text = workload.request(i).text;
      spoken.insert(text.substr(text.find(". ") + 2));
    }
    EXPECT_EQ(spoken, all);
  }
}

TEST(Workload, GivenTextsComeInOrder) {
  const Workload workload({.texts = {"a", "b", "c"}}, {});
  EXPECT_EQ(workload.request(0).text, "a");
  EXPECT_EQ(workload.request(5).text, "c");
}

TEST(Workload, FramesStayInTheirRangeAndReachItsEnds) {
  const Workload workload({.min_frames = 3, .max_frames = 5}, {});
  std::set<int64_t> frames;
  for (uint64_t i = 0; i < 100; ++i) frames.insert(workload.request(i).max_new_tokens);
  EXPECT_EQ(frames, (std::set<int64_t>{3, 4, 5}));
  EXPECT_EQ(workload.request(0).chunk_length, 0);
}

TEST(Workload, WithoutFramesTheModelDecidesTheEnd) {
  const SpeechRequest request = Workload({}, {}).request(0), plain;
  EXPECT_EQ(request.max_new_tokens, plain.max_new_tokens);
  EXPECT_EQ(request.chunk_length, plain.chunk_length);
  EXPECT_TRUE(request.encoded_references.empty());
}

// Bounds: five standard deviations of a binomial count.
TEST(Workload, VoicesFollowTheirWeights) {
  const std::vector<int> even = uses(Workload({}, voices(4)), 4, 4000);
  for (const int count : even) EXPECT_NEAR(count, 1000, 137);
  const std::vector<int> shared = uses(Workload({.shared_voice = 0.7}, voices(4)), 4, 4000);
  EXPECT_NEAR(shared[0], 2800, 145);
  for (size_t i = 1; i < 4; ++i) EXPECT_NEAR(shared[i], 400, 95);
  EXPECT_EQ(uses(Workload({.shared_voice = 1}, voices(2)), 2, 100)[0], 100);
  EXPECT_EQ(uses(Workload({.shared_voice = 0}, voices(2)), 2, 100)[0], 0);
}

TEST(Workload, HasTheRequestedNumberOfPhonemes) {
  const Workload workload({.min_phonemes = 5, .max_phonemes = 90, .seed = 2}, {});
  std::set<size_t> lengths;
  std::set<std::string> spoken;
  for (uint64_t i = 0; i < 500; ++i) {
    const SpeechRequest request = workload.request(i);
    EXPECT_EQ(request.text, "");
    const auto starts = std::ranges::count_if(request.phonemes, [](char c) { return (c & 0xC0) != 0x80; });
    lengths.insert(static_cast<size_t>(starts));
    EXPECT_EQ(request.phonemes.back(), '.');
    spoken.insert(request.phonemes);
    EXPECT_EQ(request.phonemes, workload.request(i).phonemes);
  }
  EXPECT_EQ(*lengths.begin(), 5u);
  EXPECT_EQ(*lengths.rbegin(), 90u);
  EXPECT_GT(spoken.size(), 450u);
}

TEST(Workload, ImpossibleOptionsAreRefused) {
  for (const WorkloadOptions& options :
       {WorkloadOptions{.min_frames = 0, .max_frames = 5}, WorkloadOptions{.min_frames = 5, .max_frames = 4},
        WorkloadOptions{.min_frames = 1, .max_frames = int64_t{1} << 40},
        WorkloadOptions{.min_phonemes = 3, .max_phonemes = 2}, WorkloadOptions{.max_phonemes = 9},
        WorkloadOptions{.shared_voice = 1.5}}) {
    EXPECT_EQ(code_of([&] { Workload(options, voices(3)); }), ErrorCode::invalid_argument);
  }
  EXPECT_EQ(code_of([&] { Workload({.shared_voice = 0.5}, voices(1)); }), ErrorCode::invalid_argument);
}

TEST(Texts, AreTheNonBlankLines) {
  const std::string path = testing::TempDir() + "/texts.txt";
  std::ofstream(path) << "One.\r\n\n  \nTwo. \nThree.";
  EXPECT_EQ(read_texts(path), (std::vector<std::string>{"One.", "Two.", "Three."}));
  std::ofstream(path) << "\n\n";
  EXPECT_EQ(code_of([&] { read_texts(path); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { read_texts(path + ".gone"); }), ErrorCode::not_found);
}

TEST(Voices, HaveWholeFramesOfTheModel) {
  const std::vector<int32_t> frames = {1, 10, 100, 2, 20, 200,
                                       3, 30, 300, 4, 40, 400};  // four of three codebooks
  const std::vector<int32_t> drawn = draw_frames(frames, 3, 50, 7, 0);
  ASSERT_EQ(drawn.size(), 150u);
  std::set<int32_t> seen;
  for (size_t i = 0; i < drawn.size(); i += 3) {
    seen.insert(drawn[i]);
    EXPECT_EQ(drawn[i + 1], drawn[i] * 10);
    EXPECT_EQ(drawn[i + 2], drawn[i] * 100);
  }
  EXPECT_EQ(seen.size(), 4u);
  EXPECT_EQ(drawn, draw_frames(frames, 3, 50, 7, 0));
  EXPECT_NE(drawn, draw_frames(frames, 3, 50, 7, 1));
}

}  // namespace
}  // namespace shoal::bench
