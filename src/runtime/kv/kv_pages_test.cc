#include "runtime/kv/kv_pages.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <string_view>

#include "base/error.h"

namespace shoal::runtime {
namespace {

using ::testing::ElementsAreArray;

// One column per letter, with a second id that distinguishes columns from single ids.
std::vector<int32_t> columns(std::string_view letters) {
  std::vector<int32_t> ids;
  for (const char letter : letters) ids.insert(ids.end(), {letter, -letter});
  return ids;
}

KvPages::Options four_column_pages(int64_t pages) {
  return {.pages = pages, .page_size = 4, .column_width = 2};
}

// A sequence that has computed and published its whole prompt.
SequencePages spoken(KvPages& pages, uint64_t voice, std::string_view prompt) {
  SequencePages sequence(pages, voice, columns(prompt));
  EXPECT_TRUE(sequence.hold(static_cast<int64_t>(prompt.size())));
  sequence.publish(columns(prompt), static_cast<int64_t>(prompt.size()));
  pages.check_invariants();
  return sequence;
}

std::vector<PageId> table_of(const SequencePages& sequence) {
  return {sequence.table().begin(), sequence.table().end()};
}

int64_t found(KvPages& pages, std::string_view prompt) {
  const SequencePages sequence(pages, 0, columns(prompt));
  pages.check_invariants();
  return sequence.cached_columns();
}

TEST(KvPages, FullPagesAreSharedAndTheTailIsCopied) {
  KvPages pages(four_column_pages(10));
  const SequencePages first = spoken(pages, 1, "abcdefghijkl");
  const SequencePages second(pages, 1, columns("abcdefghijXYZ"));
  EXPECT_EQ(second.cached_columns(), 10);
  ASSERT_EQ(second.table().size(), 3u);
  EXPECT_THAT(second.table().first(2), ElementsAreArray(first.table().first(2)));
  ASSERT_TRUE(second.tail_copy());
  EXPECT_EQ(second.tail_copy()->from, first.table()[2]);
  EXPECT_EQ(second.tail_copy()->to, second.table()[2]);
  EXPECT_NE(second.table()[2], first.table()[2]);
  pages.check_invariants();
}

TEST(KvPages, TheLastColumnIsNeverReused) {
  KvPages pages(four_column_pages(10));
  spoken(pages, 1, "abcdefgh");
  for (const auto& [prompt, expected] : std::vector<std::pair<std::string, int64_t>>{
           {"", 0}, {"a", 0}, {"ab", 1}, {"abcd", 3}, {"abcde", 4}, {"abcdefgh", 7}, {"abcdefghi", 8}})
    EXPECT_EQ(found(pages, prompt), expected) << prompt;
}

TEST(KvPages, OnlyEqualIdsAreFound) {
  KvPages pages(four_column_pages(10));
  spoken(pages, 1, "abcdefgh");
  EXPECT_EQ(found(pages, "bcdefghi"), 0);
  EXPECT_EQ(found(pages, "abcXefgh"), 3);
  EXPECT_EQ(found(pages, "efghabcd"), 0) << "a page is found only behind the pages it was computed behind";
  std::vector<int32_t> other_code = columns("abcdefgh");
  other_code[9] = 0;
  const SequencePages sequence(pages, 1, other_code);
  EXPECT_EQ(sequence.cached_columns(), 4);
}

TEST(KvPages, TheBestTailIsChosen) {
  KvPages pages(four_column_pages(20));
  spoken(pages, 1, "abcdeX");
  const SequencePages best = spoken(pages, 1, "abcdefgX");
  spoken(pages, 1, "abcdefX");
  const SequencePages sequence(pages, 1, columns("abcdefghi"));
  EXPECT_EQ(sequence.cached_columns(), 7);
  EXPECT_EQ(sequence.tail_copy()->from, best.table()[1]);
}

TEST(KvPages, APartlyFilledPageIsSharedUpToItsWrittenColumns) {
  KvPages pages(four_column_pages(10));
  SequencePages first(pages, 1, columns("abcdefghijkl"));
  ASSERT_TRUE(first.hold(12));
  EXPECT_EQ(found(pages, "abcdefghijkl"), 0);
  first.publish(columns("abcdefghijkl"), 6);
  EXPECT_EQ(found(pages, "abcdefghijkl"), 6);
  first.publish(columns("abcdefghijkl"), 7);
  EXPECT_EQ(found(pages, "abcdefghijkl"), 7);
  first.publish(columns("abcdefghijkl"), 12);
  EXPECT_EQ(found(pages, "abcdefghijkl"), 11);
}

TEST(KvPages, PagesComputedTwiceAreMerged) {
  KvPages pages(four_column_pages(10));
  SequencePages first(pages, 1, columns("abcdefghij")), second(pages, 1, columns("abcdefghij"));
  ASSERT_TRUE(first.hold(10) && second.hold(10));
  EXPECT_EQ(pages.statistics().pages_used, 6);
  second.publish(columns("abcdefghij"), 10);
  first.publish(columns("abcdefghij"), 10);
  pages.check_invariants();
  EXPECT_EQ(pages.statistics().pages_used, 4);
  EXPECT_EQ(first.table()[0], second.table()[0]);
  EXPECT_EQ(first.table()[1], second.table()[1]);
  EXPECT_NE(first.table()[2], second.table()[2]) << "they will be written behind the prompt";
}

TEST(KvPages, RepeatingAPromptTakesNoMorePages) {
  KvPages pages(four_column_pages(40));
  for (const std::string_view prompt : {"abcdefgh", "abcdefghij", "abcdefghij", "abcdefgh", "abcdefghijk"})
    spoken(pages, 1, prompt);
  EXPECT_EQ(pages.statistics().pages_cached, 3);
}

TEST(KvPages, EvictsTheLeastRecentlyUsedAndChildrenBeforeParents) {
  KvPages pages(four_column_pages(6));
  spoken(pages, 1, "aaaabbbbcccc");
  spoken(pages, 2, "ddddeeeeffff");
  EXPECT_EQ(found(pages, "aaaabbbbccccX"), 12);  // used again
  SequencePages hog(pages, 0, columns("X"));
  for (const auto& [held, first, second] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {4, 12, 8}, {8, 12, 4}, {12, 12, 0}, {16, 8, 0}, {20, 4, 0}, {24, 0, 0}}) {
    ASSERT_TRUE(hog.hold(held));
    pages.check_invariants();
    // A look-up would count as a use, so the pages are counted instead; the rest is looked up at the end.
    EXPECT_EQ(pages.statistics().pages_cached, (first + second) / 4);
    EXPECT_EQ(pages.statistics().voices_cached, (first > 0) + (second > 0)) << held;
  }
  EXPECT_EQ(pages.statistics().evictions, 6);
  EXPECT_FALSE(hog.hold(25));
}

TEST(KvPages, TheTailsOfAVoiceAreEvictedBeforeItsBeginning) {
  KvPages pages(four_column_pages(5));
  spoken(pages, 1, "aaaabbbbXXXX");
  spoken(pages, 1, "aaaabbbbYYYY");
  SequencePages hog(pages, 0, columns("Z"));
  ASSERT_TRUE(hog.hold(12));
  EXPECT_EQ(found(pages, "aaaabbbbY"), 8);
}

TEST(KvPages, ASourcePageIsNotEvictedForItsOwnCopy) {
  KvPages pages(four_column_pages(3));
  spoken(pages, 1, "abcdefgh");
  SequencePages hog(pages, 0, columns("X"));
  ASSERT_TRUE(hog.hold(4));
  SequencePages sequence(pages, 1, columns("abcdefgX"));
  EXPECT_EQ(sequence.cached_columns(), 4);
  EXPECT_FALSE(sequence.tail_copy());
  pages.check_invariants();
  EXPECT_TRUE(sequence.hold(8));
  hog.release();
  pages.check_invariants();
}

TEST(KvPages, CopyingAPageCountsAsAUse) {
  KvPages pages(four_column_pages(3));
  spoken(pages, 0, "abcd");
  spoken(pages, 0, "efgh");
  spoken(pages, 0, "ijkl");
  const SequencePages sequence(pages, 0, columns("abX"));  // the copy takes the place of the longest unused
  EXPECT_EQ(sequence.cached_columns(), 2);
  EXPECT_EQ(found(pages, "efX"), 0);
  EXPECT_EQ(found(pages, "abX"), 2);
}

TEST(KvPages, TheLeastRecentlyUsedVoiceLosesItsPages) {
  KvPages::Options options = four_column_pages(40);
  options.max_voices = 2;
  KvPages pages(options);
  spoken(pages, 1, "aaaaAAAA");
  spoken(pages, 2, "bbbbBBBB");
  spoken(pages, 1, "aaaaAAAA");
  spoken(pages, 0, "nnnnNNNN");
  spoken(pages, 3, "ccccCCCC");
  pages.check_invariants();
  EXPECT_EQ(pages.statistics().voices_cached, 2);
  EXPECT_EQ(found(pages, "bbbbX"), 0);
  EXPECT_EQ(found(pages, "aaaaAAAAX"), 8);
  EXPECT_EQ(found(pages, "ccccCCCCX"), 8);
  EXPECT_EQ(found(pages, "nnnnNNNNX"), 8) << "nobody's pages do not count";
}

TEST(KvPages, PagesThatAnotherVoiceSharesAreKept) {
  KvPages::Options options = four_column_pages(40);
  options.max_voices = 2;
  KvPages pages(options);
  spoken(pages, 1, "ssssaaaa");
  spoken(pages, 2, "ssssbbbb");
  spoken(pages, 3, "cccc");
  pages.check_invariants();
  EXPECT_EQ(found(pages, "ssssbbbbX"), 8);
  EXPECT_EQ(found(pages, "ssssaaaaX"), 4);
  EXPECT_EQ(pages.statistics().voices_cached, 2);
}

TEST(KvPages, MoreVoicesThanTheCacheHoldsCanSpeak) {
  KvPages::Options options = four_column_pages(40);
  options.max_voices = 1;
  KvPages pages(options);
  SequencePages first = spoken(pages, 1, "aaaaA"), second = spoken(pages, 2, "bbbbB");
  EXPECT_EQ(found(pages, "aaaaAX"), 5) << "pages that are held anyway are found";
  first.release();
  pages.check_invariants();
  EXPECT_EQ(found(pages, "aaaaAX"), 0);
  EXPECT_EQ(found(pages, "bbbbBX"), 5);
  second.release();
  EXPECT_EQ(found(pages, "bbbbBX"), 5);
}

TEST(KvPages, DroppingTheCacheKeepsPagesOfSequences) {
  KvPages pages(four_column_pages(10));
  const SequencePages held = spoken(pages, 1, "abcdefgh");
  spoken(pages, 1, "abcdXXXXYYYY");
  const std::vector<PageId> before = table_of(held);
  pages.drop_cached();
  pages.check_invariants();
  EXPECT_EQ(table_of(held), before);
  EXPECT_EQ(pages.statistics().pages_cached, 0);
  EXPECT_EQ(pages.statistics().pages_free, 8);
  EXPECT_EQ(found(pages, "abcdXXXXYYYY"), 4);
}

TEST(KvPages, WithoutACacheNothingIsKept) {
  KvPages::Options options = four_column_pages(4);
  options.cache = false;
  KvPages pages(options);
  const SequencePages held = spoken(pages, 1, "abcdefgh");
  EXPECT_EQ(found(pages, "abcdefgh"), 0);
  spoken(pages, 1, "abcdefgh");
  EXPECT_EQ(pages.statistics().pages_free, 2);
  EXPECT_EQ(pages.statistics().lookups, 0);
}

// Or a quiet engine would come to touch all of the memory that a busy one may use.
TEST(KvPages, ReleasedPagesAreReusedFirst) {
  KvPages pages(four_column_pages(100));
  std::set<PageId> touched;
  for (int i = 0; i < 50; ++i) {
    SequencePages sequence(pages, 0, columns("ab"));
    ASSERT_TRUE(sequence.hold(12));
    touched.insert(sequence.table().begin(), sequence.table().end());
  }
  EXPECT_EQ(touched.size(), 3u);
}

TEST(KvPages, AFailedHoldChangesNothing) {
  KvPages pages(four_column_pages(4));
  spoken(pages, 1, "abcdefgh");
  SequencePages sequence(pages, 1, columns("XYZ"));
  ASSERT_TRUE(sequence.hold(5));
  const std::vector<PageId> before = table_of(sequence);
  const int64_t cached = pages.statistics().pages_cached;
  for (const int64_t columns : {int64_t{17}, std::numeric_limits<int64_t>::max()})
    EXPECT_FALSE(sequence.hold(columns));
  EXPECT_EQ(table_of(sequence), before);
  EXPECT_EQ(pages.statistics().pages_cached, cached);
  EXPECT_TRUE(sequence.hold(16));
  EXPECT_TRUE(sequence.hold(1));
  EXPECT_EQ(sequence.table().size(), 4u);
  EXPECT_EQ(pages.available(), 0);
}

TEST(KvPages, MovedAndReleasedSequencesHoldNothing) {
  KvPages pages(four_column_pages(6));
  SequencePages first = spoken(pages, 1, "abcdefgh");
  const std::vector<PageId> before = table_of(first);
  SequencePages second = std::move(first);
  EXPECT_EQ(table_of(second), before);
  EXPECT_TRUE(first.table().empty());  // NOLINT(bugprone-use-after-move): the moved-from state is specified
  SequencePages third(pages, 2, columns("X"));
  ASSERT_TRUE(third.hold(4));
  third = std::move(second);
  pages.check_invariants();
  EXPECT_EQ(pages.statistics().pages_used, 2);
  third.release();
  third.release();
  pages.check_invariants();
  EXPECT_EQ(pages.statistics().pages_used, 0);
  EXPECT_EQ(third.cached_columns(), 0);
  EXPECT_THROW(third.hold(1), Error) << "it has no pool any more";
}

TEST(KvPages, StatisticsCountColumns) {
  KvPages pages(four_column_pages(3));
  spoken(pages, 7, "abcdef");
  {
    const SequencePages sequence(pages, 7, columns("abcdeX"));
    const KvStatistics now = pages.statistics();
    EXPECT_EQ(now.pages_used, 2);
    EXPECT_EQ(now.pages_cached, 1);
    EXPECT_EQ(now.pages_free, 0);
  }
  const KvStatistics now = pages.statistics();
  EXPECT_EQ(now.pages, 3);
  EXPECT_EQ(now.page_size, 4);
  EXPECT_EQ(now.lookups, 2);
  EXPECT_EQ(now.hits, 1);
  EXPECT_EQ(now.hit_columns, 5);
  EXPECT_EQ(now.missed_columns, 7);
  EXPECT_EQ(now.tail_copies, 1);
  EXPECT_EQ(now.voices_cached, 1);
}

TEST(KvPages, BrokenPromisesAreRefused) {
  for (const KvPages::Options& options : std::vector<KvPages::Options>{
           {.pages = 0, .page_size = 4, .column_width = 2},
           {.pages = 4, .page_size = 0, .column_width = 2},
           {.pages = 4, .page_size = 4, .column_width = 0},
           {.pages = 4, .page_size = 4, .column_width = 2, .max_voices = -1},
           {.pages = int64_t{1} << 40, .page_size = 4, .column_width = 2},
           {.pages = 4, .page_size = int64_t{1} << 40, .column_width = int64_t{1} << 40}})
    EXPECT_THROW(KvPages{options}, Error);

  KvPages pages(four_column_pages(4));
  const std::vector<int32_t> three = {1, 2, 3};
  EXPECT_THROW(SequencePages(pages, 1, three), Error);
  SequencePages sequence(pages, 1, columns("abcdef"));
  ASSERT_TRUE(sequence.hold(6));
  EXPECT_THROW(sequence.publish(columns("abcdef"), 7), Error);
  EXPECT_THROW(sequence.publish(columns("abcdefghi"), 9), Error);
  EXPECT_THROW(sequence.hold(-1), Error);
  EXPECT_THROW(sequence.reserve_table(-1), Error);
  EXPECT_THROW(SequencePages().publish(columns("a"), 1), Error);
  pages.check_invariants();
}

}  // namespace
}  // namespace shoal::runtime
