#include "models/kokoro/batch.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "base/error.h"
#include "models/kokoro/plbert.h"
#include "models/kokoro/small_config_testing.h"

namespace shoal::kokoro {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(KokoroLayout, GapsSeparateUtterances) {
  const Layout layout({3, 1});
  EXPECT_THAT(layout.tables(), ElementsAre(2, 7, 3, 1));
  EXPECT_EQ(layout.total(), 2 + 3 + 2 + 1 + 2 + 1);
  EXPECT_THAT(layout.utterance_of_row(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0));
}

TEST(KokoroLayout, AFewSizesCoverEveryBatchWithLittlePadding) {
  constexpr int32_t kMost = 640;
  std::set<int64_t> totals;
  for (int32_t frames = 1; frames <= kMost; ++frames) {
    const Layout plain({frames}), recorded = Layout::recorded(frames);
    EXPECT_EQ(recorded.tables(), plain.tables());
    EXPECT_GE(recorded.total(), plain.total());
    EXPECT_LE(recorded.total(), plain.total() + std::max<int64_t>(1, plain.total() / 8));
    EXPECT_EQ(recorded.total(), Layout::recorded_total(frames));
    totals.insert(recorded.total());
  }
  EXPECT_EQ(*totals.rbegin(), Layout::recorded_total(kMost));
  EXPECT_EQ(std::ssize(totals), Layout::recorded_sizes(kMost));
  EXPECT_LT(std::ssize(totals), 60);
}

TEST(KokoroBatch, ArraysDescribeTheLayout) {
  const Config config = small_config();
  const std::vector<float> style(static_cast<size_t>(2 * config.style_dim), 0.5f);
  const std::vector<int32_t> one = {0, 5, 0}, other = {0, 3, 4, 0};
  const std::vector<Utterance> utterances = {{.ids = one, .style = style}, {.ids = other, .style = style}};
  const TokenBatch tokens(config, utterances, Padding::none);
  const auto row = [&](int64_t r) {
    const auto from = tokens.parts.begin() + 3 * r;
    return std::vector<int32_t>(from, from + 3);
  };
  const auto part = [&](int32_t id, int32_t position) {
    const auto parts = PlBert::parts(config, id, position);
    return std::vector<int32_t>(parts.begin(), parts.end());
  };
  EXPECT_EQ(std::ssize(tokens.parts), 3 * tokens.layout.total());
  EXPECT_EQ(row(0), part(0, 0));
  EXPECT_EQ(row(3), part(5, 1));
  EXPECT_EQ(row(9), part(4, 2));
  EXPECT_EQ(row(tokens.layout.total() - 1), part(0, 0));
  EXPECT_EQ(tokens.utterance_of[9], 1);
  EXPECT_EQ(std::ssize(tokens.styles), 2 * 2 * config.style_dim);
  EXPECT_THAT(tokens.styles, Each(0.5f));

  const std::vector<Spoken> spoken = {{.durations = {1, 2, 1}}, {.durations = {3, 1, 1, 2}}};
  const std::vector<uint64_t> seeds = {7, 8};
  const FrameBatch frames(tokens.layout, 0, spoken, seeds, Padding::none);
  EXPECT_EQ(frames.layout.length(0), 4);
  EXPECT_EQ(frames.layout.length(1), 7);
  EXPECT_THAT(std::vector<int32_t>(frames.token_of.begin(), frames.token_of.begin() + 16),
              ElementsAre(0, 0, 2, 3, 3, 4, 0, 0, 7, 7, 7, 8, 9, 10, 10, 0));
  EXPECT_EQ(frames.seeds[0], 7);
  EXPECT_EQ(frames.seeds[1], 8);
  EXPECT_EQ(std::ssize(frames.seeds), frames.layout.count());
  // Only the frames of the second one.
  const FrameBatch second(tokens.layout, 1, std::span(spoken).subspan(1), std::span(seeds).subspan(1),
                          Padding::none);
  EXPECT_EQ(second.token_of[2], 7);
  EXPECT_EQ(second.seeds[0], 8);
}

// Whether `recorded` begins with `plain` and continues with these values, at least once.
void expect_padded(const std::vector<int32_t>& recorded, const std::vector<int32_t>& plain,
                   const std::vector<int32_t>& pad) {
  ASSERT_GT(recorded.size(), plain.size());
  for (size_t i = 0; i < recorded.size(); ++i)
    EXPECT_EQ(recorded[i], i < plain.size() ? plain[i] : pad[(i - plain.size()) % pad.size()]) << i;
}

TEST(KokoroBatch, ABatchForAGraphHasTheSameArraysPaddedWithGaps) {
  const Config config = small_config();
  const std::vector<float> style(static_cast<size_t>(2 * config.style_dim), 0.5f);
  const std::vector<int32_t> ids(28, 3);
  const std::vector<Utterance> one(1, {.ids = ids, .style = style});
  const std::vector<Spoken> spoken = {{.durations = std::vector<int32_t>(ids.size(), 2)}};
  const std::vector<uint64_t> seeds = {7};
  const TokenBatch tokens(config, one, Padding::recorded), plain_tokens(config, one, Padding::none);
  const auto pad = PlBert::parts(config, 0, 0);
  expect_padded(tokens.parts, plain_tokens.parts, {pad.begin(), pad.end()});
  expect_padded(tokens.utterance_of, plain_tokens.utterance_of, {0});
  EXPECT_EQ(tokens.styles, plain_tokens.styles);
  const FrameBatch frames(tokens.layout, 0, spoken, seeds, Padding::recorded),
      plain(plain_tokens.layout, 0, spoken, seeds, Padding::none);
  expect_padded(frames.token_of, plain.token_of, {0});
  EXPECT_EQ(frames.seeds, plain.seeds);
  const std::vector<Utterance> two(2, one[0]);
  EXPECT_THROW(TokenBatch(config, two, Padding::recorded), Error);
}

}  // namespace
}  // namespace shoal::kokoro
