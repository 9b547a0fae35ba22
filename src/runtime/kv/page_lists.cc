#include "runtime/kv/page_lists.h"

#include <limits>
#include <numeric>

#include "base/error.h"

namespace shoal::runtime {

PageLists::PageLists(int64_t pages, int64_t lists) : pages_(pages) {
  CHECK(pages >= 0 && lists >= 0 && lists <= std::numeric_limits<int32_t>::max() - pages, pages, " pages, ",
        lists, " lists");
  next_.resize(static_cast<size_t>(pages + lists));
  std::iota(next_.begin(), next_.end(), 0);
  previous_ = next_;
}

void PageLists::push_back(int64_t list, PageId page) {
  const auto end = sentinel(list), node = static_cast<size_t>(page);
  const int32_t last = previous_[end];
  next_[static_cast<size_t>(last)] = page;
  previous_[node] = last;
  next_[node] = static_cast<int32_t>(end);
  previous_[end] = page;
}

void PageLists::remove(PageId page) {
  const auto node = static_cast<size_t>(page);
  next_[static_cast<size_t>(previous_[node])] = next_[node];
  previous_[static_cast<size_t>(next_[node])] = previous_[node];
  next_[node] = previous_[node] = page;
}

}  // namespace shoal::runtime
