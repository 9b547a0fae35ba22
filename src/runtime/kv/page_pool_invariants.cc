#include <map>

#include "base/error.h"
#include "runtime/kv/page_pool.h"

namespace shoal::runtime {

void PagePool::check_invariants(std::span<const int64_t> holders) const {
  check_lists(holders);
  check_tree();
  check_voices();
}

// Every page is used, cached or free, consistent with its holders and the index; children come before their
// parents.
void PagePool::check_lists(std::span<const int64_t> holders) const {
  std::vector<bool> seen(holders.size());
  int64_t free = 0, cached = 0;
  for (PageId page = idle_.first(kFree); page != kNoPage; page = idle_.after(page), ++free) {
    CHECK(!seen.at(static_cast<size_t>(page)), "page ", page, " is listed twice");
    seen[static_cast<size_t>(page)] = true;
    CHECK(!index_.contains(page), "free page ", page, " is in the index");
  }
  for (PageId page = idle_.first(kCached); page != kNoPage; page = idle_.after(page), ++cached) {
    CHECK(!seen.at(static_cast<size_t>(page)), "page ", page, " is listed twice");
    seen[static_cast<size_t>(page)] = true;
    CHECK(index_.contains(page), "cached page ", page, " cannot be found");
    index_.each_child(page, [&](PageId child) {
      CHECK(seen[static_cast<size_t>(child)], "page ", page, " would be evicted before ", child,
            " behind it");
    });
  }
  CHECK(free == free_ && cached == cached_, "free ", free_, ", listed ", free, "; cached ", cached_,
        ", listed ", cached);
  for (size_t page = 0; page < holders.size(); ++page) {
    CHECK(holders_[page] == holders[page], "page ", page, " has ", holders[page], " holders, counted ",
          holders_[page]);
    CHECK((holders[page] > 0) != seen[page], "page ", page, " has ", holders[page], " holders and is ",
          seen[page] ? "free or cached" : "nowhere");
  }
}

// Every indexed page can be reached and found, as the only one with its prefix.
void PagePool::check_tree() const {
  for (PageId page = 0; page < options_.pages; ++page) {
    if (!index_.contains(page)) continue;
    const PageId parent = index_.parent(page);
    CHECK(parent == kNoPage || index_.is_full(parent), "page ", page, " follows ", parent,
          ", which is not a full page of the index");
    CHECK(parent == kNoPage || holders_[static_cast<size_t>(parent)] >= holders_[static_cast<size_t>(page)],
          "page ", page, " has more holders than ", parent, " before it");
    bool is_child = false;
    index_.each_child(parent, [&](PageId child) {
      is_child |= child == page;
      const PrefixIndex::Ids mine = index_.ids(page), other = index_.ids(child);
      CHECK(
          child == page || mine.size() > other.size() || !std::ranges::equal(mine, other.first(mine.size())),
          "page ", page, " holds nothing that ", child, " does not");
    });
    CHECK(is_child, "page ", page, " is no child of ", parent);
    CHECK(index_.longest_match(parent, index_.ids(page)).page == page, "page ", page,
          " is not what shares the most with its own columns");
    if (index_.is_full(page))
      CHECK(index_.find(parent, index_.ids(page)) == page, "page ", page, " is not found");
    if (!index_.is_full(page)) CHECK(!index_.has_children(page), "begun page ", page, " has children");
  }
}

void PagePool::check_voices() const {
  std::map<uint64_t, int64_t> pages;
  for (PageId page = 0; page < options_.pages; ++page)
    if (index_.contains(page)) ++pages[voice_of_[static_cast<size_t>(page)]];
  pages.erase(0);
  CHECK(voices_.count() == static_cast<int64_t>(pages.size()), voices_.count(), " voices, counted ",
        pages.size());
  for (const auto& [voice, count] : pages)
    CHECK(voices_.pages_of(voice) == count, "voice ", voice, " has ", count, " pages, counted ",
          voices_.pages_of(voice));
}

}  // namespace shoal::runtime
