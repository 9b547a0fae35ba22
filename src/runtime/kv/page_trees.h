// Search trees threaded through the numbers of pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>
#include <xxhash.h>

#include "runtime/kv/page_lists.h"

namespace shoal::runtime {

// A fixed number of trees; a page is in at most one of them. Treaps (Seidel and Aragon 1996): no page stands
// below one of a lower rank, and ranks are scattered, so of n pages one stands 1.4 log2(n) deep on average,
// in whatever order they come. All but the constructor allocates nothing.
//
// `order(page)` says where something stands: below 0 before the page, above 0 behind it; 0: it is the same.
class PageTrees {
 public:
  PageTrees(int64_t pages, int64_t trees)
      : roots_(static_cast<size_t>(trees), kNoPage), links_(static_cast<size_t>(pages)) {}

  // One of its pages; kNoPage when there is none.
  PageId any(int64_t tree) const { return roots_[static_cast<size_t>(tree)]; }

  // All of them, in order.
  template <typename Visit>
  void each(int64_t tree, const Visit& visit) const {
    each_from(any(tree), visit);
  }

  // Calls `order` for the pages on the way to where something stands: the same one, the last page before that
  // place and the first behind it are among them.
  template <typename Order>
  void descend(int64_t tree, const Order& order) const {
    for (PageId at = any(tree); at != kNoPage;) at = order(at) < 0 ? links(at).before : links(at).behind;
  }

  // The page must be in no tree. order: where it stands, never 0.
  template <typename Order>
  void insert(int64_t tree, PageId page, const Order& order) {
    PageId* place = &roots_[static_cast<size_t>(tree)];
    while (*place != kNoPage && rank(*place) > rank(page)) place = next(*place, order);
    // What stood there is divided into what is before the page and what is behind it.
    PageId below = *place;
    *place = page;
    PageId *before = &links(page).before, *behind = &links(page).behind;
    while (below != kNoPage) {
      const bool is_behind = order(below) < 0;
      PageId*& side = is_behind ? behind : before;
      *side = below;
      side = is_behind ? &links(below).before : &links(below).behind;
      below = *side;
    }
    *before = *behind = kNoPage;
  }

  // The page must be in the tree. order: where it stands; not asked about itself.
  template <typename Order>
  void remove(int64_t tree, PageId page, const Order& order) {
    PageId* place = &roots_[static_cast<size_t>(tree)];
    while (*place != page) place = next(*place, order);
    auto [before, behind] = links(page);
    while (before != kNoPage && behind != kNoPage) {
      const bool first = rank(before) > rank(behind);
      PageId& top = first ? before : behind;
      *place = top;
      place = first ? &links(top).behind : &links(top).before;
      top = *place;
    }
    *place = before != kNoPage ? before : behind;
  }

 private:
  struct Links {
    PageId before = kNoPage, behind = kNoPage;
  };

  template <typename Visit>
  void each_from(PageId page, const Visit& visit) const {
    if (page == kNoPage) return;
    each_from(links(page).before, visit);
    visit(page);
    each_from(links(page).behind, visit);
  }

  static uint32_t rank(PageId page) { return XXH32(&page, sizeof page, 0); }
  Links& links(PageId page) { return links_[static_cast<size_t>(page)]; }
  const Links& links(PageId page) const { return links_[static_cast<size_t>(page)]; }
  template <typename Order>
  PageId* next(PageId page, const Order& order) {
    return order(page) < 0 ? &links(page).before : &links(page).behind;
  }

  std::vector<PageId> roots_;
  std::vector<Links> links_;
};

}  // namespace shoal::runtime
