#include "models/kokoro/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "models/kokoro/plbert.h"
#include "models/kokoro/small_config.h"

namespace shoal::kokoro {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::vector<int32_t> tables_of(const Layout& layout) { return layout.tables(); }

TEST(KokoroLayout, UtterancesLieBetweenGaps) {
  const Layout layout({3, 1});
  EXPECT_THAT(tables_of(layout), ElementsAre(2, 7, 3, 1));
  EXPECT_EQ(layout.total(), 2 + 3 + 2 + 1 + 2 + 1);
  EXPECT_THAT(layout.utterance_of_row(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0));
}

TEST(KokoroLayout, ARecordedOneHasTheUtterancesOfThePlainOneFirst) {
  for (const std::vector<int32_t>& lengths :
       {std::vector<int32_t>{1}, {300}, {5, 40}, {9, 1, 30}, {200, 100, 1, 7}}) {
    const Layout plain(lengths), recorded = Layout::recorded(lengths);
    EXPECT_EQ(recorded.count(), lengths.size() == 1 ? 1 : Layout::kMostRecorded);
    for (int64_t u = 0; u < plain.count(); ++u) {
      EXPECT_EQ(recorded.begin(u), plain.begin(u));
      EXPECT_EQ(recorded.length(u), plain.length(u));
    }
    for (int64_t u = plain.count(); u < recorded.count(); ++u) EXPECT_EQ(recorded.length(u), 1);
    const int64_t last = recorded.count() - 1;
    EXPECT_GE(recorded.total(), recorded.begin(last) + recorded.length(last) + kGap + 1);
  }
  EXPECT_THROW(Layout::recorded({}), Error);
  EXPECT_THROW(Layout::recorded({1, 1, 1, 1, 1}), Error);
}

TEST(KokoroLayout, FewSizesServeAllAndNoneIsMuchTooLarge) {
  constexpr int32_t kMost = 640;
  std::set<int64_t> totals;
  for (int32_t frames = 1; frames <= kMost; ++frames) {
    const Layout plain({frames}), recorded = Layout::recorded({frames});
    totals.insert(recorded.total());
    EXPECT_LE(recorded.total(), plain.total() + std::max<int64_t>(1, plain.total() / 8));
    EXPECT_LE(recorded.total(), Layout::most_recorded(kMost));
    EXPECT_LE(Layout::recorded({frames, kMost + 1 - frames > 1 ? kMost - frames : 1}).total(),
              Layout::most_recorded(kMost + 1));
  }
  EXPECT_LE(std::ssize(totals), Layout::recorded_sizes(kMost));
  EXPECT_LE(Layout::recorded_sizes(kMost), std::ssize(totals) + 2);  // those of several utterances
  EXPECT_LT(std::ssize(totals), 60);
}

TEST(KokoroBatch, ArraysSayWhatStandsWhere) {
  const Config config = small_config();
  const std::vector<float> style(static_cast<size_t>(2 * config.style_dim), 0.5f);
  const std::vector<int32_t> one = {0, 5, 0}, other = {0, 3, 4, 0};
  const std::vector<Utterance> utterances = {{.ids = one, .style = style}, {.ids = other, .style = style}};
  for (const Padding padding : {Padding::none, Padding::recorded}) {
    const TokenBatch tokens(config, utterances, padding);
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
    EXPECT_EQ(std::ssize(tokens.styles), tokens.layout.count() * 2 * config.style_dim);
    EXPECT_THAT(std::vector<float>(tokens.styles.begin() + 2 * std::ssize(style), tokens.styles.end()),
                Each(0));

    const std::vector<Spoken> spoken = {{.durations = {1, 2, 1}}, {.durations = {3, 1, 1, 2}}};
    const std::vector<uint64_t> seeds = {7, 8};
    const FrameBatch frames(tokens.layout, 0, spoken, seeds, padding);
    EXPECT_EQ(frames.layout.length(0), 4);
    EXPECT_EQ(frames.layout.length(1), 7);
    EXPECT_THAT(std::vector<int32_t>(frames.token_of.begin(), frames.token_of.begin() + 16),
                ElementsAre(0, 0, 2, 3, 3, 4, 0, 0, 7, 7, 7, 8, 9, 10, 10, 0));
    EXPECT_EQ(frames.seeds[0], 7);
    EXPECT_EQ(frames.seeds[1], 8);
    EXPECT_EQ(std::ssize(frames.seeds), frames.layout.count());
    // The second one's frames alone.
    const FrameBatch second(tokens.layout, 1, std::span(spoken).subspan(1), std::span(seeds).subspan(1),
                            padding);
    EXPECT_EQ(second.token_of[2], 7);
    EXPECT_EQ(second.seeds[0], 8);
  }
}

}  // namespace
}  // namespace shoal::kokoro
