// Doubly linked lists threaded through the numbers of pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/kv/kv_pages.h"

namespace shoal::runtime {

constexpr PageId kNoPage = -1;

// A fixed number of lists; a page is in at most one of them. All but the constructor is O(1) and allocates
// nothing, so that moving pages cannot fail half-way.
class PageLists {
 public:
  PageLists(int64_t pages, int64_t lists);

  // The page must be in no list.
  void push_back(int64_t list, PageId page) { insert_before(sentinel(list), page); }
  void push_front(int64_t list, PageId page) {
    insert_before(static_cast<size_t>(next_[sentinel(list)]), page);
  }
  // The page must be in a list.
  void remove(PageId page);

  // kNoPage at the end.
  PageId first(int64_t list) const { return page_or_none(next_[sentinel(list)]); }
  PageId after(PageId page) const { return page_or_none(next_[static_cast<size_t>(page)]); }

 private:
  size_t sentinel(int64_t list) const { return static_cast<size_t>(pages_ + list); }
  void insert_before(size_t node, PageId page);
  PageId page_or_none(int32_t node) const { return node < pages_ ? node : kNoPage; }

  // Rings: nodes below pages_ are pages, the others are where a list begins and ends.
  int64_t pages_;
  std::vector<int32_t> next_, previous_;
};

}  // namespace shoal::runtime
