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

void PageLists::insert_before(size_t node, PageId page) {
  const int32_t before = previous_[node];
  next_[static_cast<size_t>(before)] = page;
  previous_[static_cast<size_t>(page)] = before;
  next_[static_cast<size_t>(page)] = static_cast<int32_t>(node);
  previous_[node] = page;
}

void PageLists::remove(PageId page) {
  const auto node = static_cast<size_t>(page);
  next_[static_cast<size_t>(previous_[node])] = next_[node];
  previous_[static_cast<size_t>(next_[node])] = previous_[node];
  next_[node] = previous_[node] = page;
}

}  // namespace shoal::runtime
