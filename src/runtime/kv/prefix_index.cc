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

PrefixIndex::Comparison PrefixIndex::compare(Ids wanted, PageId page) const {
  const Ids own = ids(page);
  const auto [mine, theirs] = std::mismatch(wanted.begin(), wanted.end(), own.begin(), own.end());
  const int64_t common = mine - wanted.begin();
  if (mine == wanted.end() || theirs == own.end())
    return {static_cast<int>(mine != wanted.end()) - static_cast<int>(theirs != own.end()), common};
  return {*mine < *theirs ? -1 : 1, common};
}

PageId PrefixIndex::find(PageId parent, Ids wanted) const {
  // Equal keys may be a collision: the parent and the ids decide.
  for (PageId page = buckets_.first(bucket_of(key_of(parent, wanted))); page != kNoPage;
       page = buckets_.after(page))
    if (node(page).parent == parent && std::ranges::equal(ids(page), wanted)) return page;
  return kNoPage;
}

PrefixIndex::Match PrefixIndex::longest_match(PageId parent, Ids wanted) const {
  Match best;
  children_.descend(children_of(parent), [&](PageId page) {
    const Comparison found = compare(wanted, page);
    if (const int64_t columns = found.common / column_width_; columns > best.columns) best = {page, columns};
    return found.order;
  });
  return best;
}

void PrefixIndex::insert(PageId page, PageId parent, Ids ids) {
  Node& added = nodes_[static_cast<size_t>(page)];
  added.columns = static_cast<int64_t>(ids.size()) / column_width_;
  added.parent = parent;
  std::ranges::copy(ids, ids_.get() + page * page_size_ * column_width_);
  children_.insert(children_of(parent), page, [&](PageId other) { return compare(ids, other).order; });
  if (!is_full(page)) return;
  added.key = key_of(parent, ids);
  buckets_.push_back(bucket_of(added.key), page);
}

void PrefixIndex::remove(PageId page) {
  const Ids own = ids(page);
  children_.remove(children_of(parent(page)), page, [&](PageId other) { return compare(own, other).order; });
  if (is_full(page)) buckets_.remove(page);
  nodes_[static_cast<size_t>(page)] = {};
}

}  // namespace shoal::runtime
