#include "runtime/kv/prefix_index.h"

#include <algorithm>
#include <bit>
#include <xxhash.h>

namespace shoal::runtime {
PrefixIndex::PrefixIndex(int64_t pages, int64_t page_size, int64_t column_width)
    : page_size_(page_size),
      column_width_(column_width),
      bucket_mask_(std::bit_ceil(static_cast<uint64_t>(pages)) - 1),
      nodes_(static_cast<size_t>(pages)),
      ids_(std::make_unique_for_overwrite<int32_t[]>(static_cast<size_t>(pages * page_size * column_width))),
      children_(pages, pages + 1),
      buckets_(pages, static_cast<int64_t>(bucket_mask_) + 1) {}

uint64_t PrefixIndex::key_of(PageId parent, Ids ids) const {
  return XXH3_64bits_withSeed(ids.data(), ids.size_bytes(), parent == kNoPage ? 0 : node(parent).key);
}

PrefixIndex::Ids PrefixIndex::ids(PageId page) const {
  const int32_t* first = ids_.get() + page * page_size_ * column_width_;
  return {first, static_cast<size_t>(node(page).columns * column_width_)};
}

int64_t PrefixIndex::common_columns(PageId page, Ids wanted) const {
  const Ids own = ids(page);
  const auto difference = std::mismatch(own.begin(), own.end(), wanted.begin(), wanted.end()).first;
  return (difference - own.begin()) / column_width_;
}

PageId PrefixIndex::find(PageId parent, Ids wanted) const {
  // Equal keys may be a collision: the parent and the ids decide.
  for (PageId page = buckets_.first(bucket_of(key_of(parent, wanted))); page != kNoPage;
       page = buckets_.after(page))
    if (node(page).parent == parent && std::ranges::equal(ids(page), wanted)) return page;
  return kNoPage;
}

PrefixIndex::Match PrefixIndex::longest_match(PageId parent, Ids wanted) const {
  const int64_t most = static_cast<int64_t>(wanted.size()) / column_width_;
  Match best;
  for (PageId page = first_child(parent); page != kNoPage && best.columns < most; page = next_child(page))
    if (const int64_t columns = common_columns(page, wanted); columns > best.columns) best = {page, columns};
  return best;
}

PageId PrefixIndex::find_begun(PageId parent, Ids wanted) const {
  for (PageId page = first_child(parent); page != kNoPage; page = next_child(page))
    if (!is_full(page) && common_columns(page, wanted) == columns(page)) return page;
  return kNoPage;
}

void PrefixIndex::insert(PageId page, PageId parent, Ids ids) {
  Node& added = nodes_[static_cast<size_t>(page)];
  added.columns = static_cast<int64_t>(ids.size()) / column_width_;
  added.parent = parent;
  std::ranges::copy(ids, ids_.get() + page * page_size_ * column_width_);
  children_.push_back(child_list(parent), page);
  if (!is_full(page)) return;
  added.key = key_of(parent, ids);
  buckets_.push_back(bucket_of(added.key), page);
}

void PrefixIndex::remove(PageId page) {
  children_.remove(page);
  if (is_full(page)) buckets_.remove(page);
  nodes_[static_cast<size_t>(page)] = {};
}

}  // namespace shoal::runtime
