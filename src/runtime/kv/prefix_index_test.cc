// What the index finds in its trees is what comparing every child would find.
#include "runtime/kv/prefix_index.h"

#include <algorithm>
#include <climits>
#include <gtest/gtest.h>
#include <random>

namespace shoal::runtime {
namespace {

constexpr int64_t kIndexPages = 64, kColumnsOfAPage = 4, kIdsOfAColumn = 2;

class IndexOfRandomPages {
 public:
  explicit IndexOfRandomPages(uint32_t seed)
      : random_(seed), index_(kIndexPages, kColumnsOfAPage, kIdsOfAColumn) {}

  const PrefixIndex& index() const { return index_; }

  // 1 to kColumnsOfAPage columns of few ids, so that many begin alike.
  std::vector<int32_t> some_ids() {
    std::vector<int32_t> ids(static_cast<size_t>(below(kColumnsOfAPage) + 1) * kIdsOfAColumn);
    for (int32_t& id : ids) id = static_cast<int32_t>(below(3)) - 1;
    return ids;
  }
  // The beginning, or a full page.
  PageId some_parent() {
    const auto page = static_cast<PageId>(below(kIndexPages));
    return index_.is_full(page) ? page : kNoPage;
  }
  // Adds or removes a page, as the pool may.
  void change() {
    const auto page = static_cast<PageId>(below(kIndexPages));
    if (index_.contains(page)) {
      if (!index_.has_children(page)) index_.remove(page);
      return;
    }
    const PageId parent = some_parent();
    const std::vector<int32_t> ids = some_ids();
    if (!is_told_by_another(parent, ids)) index_.insert(page, parent, ids);
  }

  int64_t most_common_columns(PageId parent, PrefixIndex::Ids ids) const {
    int64_t most = 0;
    index_.each_child(parent, [&](PageId page) { most = std::max(most, common_columns(page, ids)); });
    return most;
  }
  // The page that holds nothing but columns of `ids`.
  PageId held(PageId parent, PrefixIndex::Ids ids) const {
    PageId found = kNoPage;
    index_.each_child(parent, [&](PageId page) {
      if (common_columns(page, ids) == index_.columns(page)) found = page;
    });
    return found;
  }
  int64_t common_columns(PageId page, PrefixIndex::Ids ids) const {
    const PrefixIndex::Ids own = index_.ids(page);
    size_t same = 0;
    while (same < std::min(own.size(), ids.size()) && own[same] == ids[same]) ++same;
    return static_cast<int64_t>(same) / kIdsOfAColumn;
  }

 private:
  int64_t below(int64_t bound) { return std::uniform_int_distribution<int64_t>(0, bound - 1)(random_); }
  // One of the two pages would hold nothing that the other does not.
  bool is_told_by_another(PageId parent, PrefixIndex::Ids ids) const {
    bool told = false;
    index_.each_child(parent, [&](PageId page) {
      const int64_t shorter =
          std::min(index_.columns(page), static_cast<int64_t>(ids.size()) / kIdsOfAColumn);
      told |= common_columns(page, ids) == shorter;
    });
    return told;
  }

  std::mt19937 random_;
  PrefixIndex index_;
};

class PrefixIndexSearch : public ::testing::TestWithParam<uint32_t> {};

TEST_P(PrefixIndexSearch, FindsWhatComparingEveryChildFinds) {
  IndexOfRandomPages pages(GetParam());
  int64_t partial = 0, held = 0;
  for (int step = 0; step < 4000; ++step) {
    pages.change();
    const PageId parent = pages.some_parent();
    const std::vector<int32_t> ids = pages.some_ids();
    const PrefixIndex::Match match = pages.index().longest_match(parent, ids);
    ASSERT_EQ(match.columns, pages.most_common_columns(parent, ids)) << "step " << step;
    ASSERT_EQ(match.page == kNoPage, match.columns == 0);
    if (match.columns > 0) {
      ASSERT_EQ(pages.index().parent(match.page), parent);
      ASSERT_EQ(pages.common_columns(match.page, ids), match.columns);
    }
    const PageId held_page = pages.held(parent, ids);
    ASSERT_TRUE(held_page == kNoPage || match.page == held_page) << "step " << step;
    partial += match.columns > 0 && match.columns < pages.index().columns(match.page);
    held += held_page != kNoPage;
  }
  EXPECT_GT(partial, 100);
  EXPECT_GT(held, 100);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PrefixIndexSearch, ::testing::Range(0u, 8u));

// Pages whose order rises with their numbers, by any stride, would make a list of a tree without care.
TEST(PageTrees, StayShallowAndInOrderWhicheverPagesCome) {
  constexpr int64_t kMany = 10'000;
  constexpr int kDeep = 60;  // 4.5 log2 of them
  std::mt19937 random(1);
  for (const int64_t stride : {1, 13, 21, 4181, 9999}) {
    PageTrees trees(kMany, 1);
    std::vector<int64_t> place(kMany);
    std::vector<PageId> coming(kMany);
    for (int64_t i = 0; i < kMany; ++i) {
      coming[static_cast<size_t>(i)] = static_cast<PageId>(i * stride % kMany);
      place[static_cast<size_t>(coming[static_cast<size_t>(i)])] = i;
    }
    const auto order_of = [&](PageId page) {
      return [&, mine = place[static_cast<size_t>(page)]](PageId other) {
        const int64_t theirs = place[static_cast<size_t>(other)];
        return mine == theirs ? 0 : mine < theirs ? -1 : 1;
      };
    };
    const std::vector<PageId> rising = coming;
    std::ranges::shuffle(coming, random);
    for (const PageId page : coming) trees.insert(0, page, order_of(page));
    std::vector<PageId> found;
    trees.each(0, [&](PageId page) { found.push_back(page); });
    EXPECT_EQ(found, rising) << "stride " << stride;
    int deepest = 0;
    for (PageId page = 0; page < kMany; ++page) {
      int depth = 0;
      bool met = false;
      const auto order = order_of(page);
      trees.descend(0, [&](PageId other) {
        depth += !met;
        met |= other == page;
        return order(other);
      });
      deepest = std::max(deepest, met ? depth : INT_MAX);
    }
    EXPECT_LE(deepest, kDeep) << "stride " << stride;
    std::ranges::shuffle(coming, random);
    for (const PageId page : coming) trees.remove(0, page, order_of(page));
    EXPECT_EQ(trees.any(0), kNoPage);
  }
}

}  // namespace
}  // namespace shoal::runtime
