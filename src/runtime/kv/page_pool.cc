#include "runtime/kv/page_pool.h"

#include "base/error.h"

namespace shoal::runtime {
namespace {

const KvPages::Options& checked(const KvPages::Options& options) {
  // Page numbers are 32 bits, and so are those of the index's lists, of which there are under twice as many.
  constexpr int64_t kMostPages = int64_t{1} << 29, kMostIds = int64_t{1} << 48;
  CHECK(1 <= options.pages && options.pages <= kMostPages && 1 <= options.page_size &&
            1 <= options.column_width && options.page_size <= kMostIds / options.pages &&
            options.column_width <= kMostIds / (options.pages * options.page_size),
        "KV pages: ", options.pages, " pages of ", options.page_size, " columns of ", options.column_width,
        " ids");
  CHECK(options.max_voices >= 0, "KV pages: max_voices ", options.max_voices);
  return options;
}

}  // namespace

PagePool::PagePool(const KvPages::Options& options)
    : options_(checked(options)),
      index_(options.pages, options.page_size, options.column_width),
      idle_(options.pages, 2),
      holders_(static_cast<size_t>(options.pages)),
      voice_of_(static_cast<size_t>(options.pages)),
      voices_(options.pages),
      free_(options.pages) {
  for (PageId page = 0; page < options.pages; ++page) idle_.push_back(kFree, page);
}

KvStatistics PagePool::statistics() const {
  KvStatistics now = counters_;
  now.pages = options_.pages;
  now.pages_free = free_;
  now.pages_cached = cached_;
  now.pages_used = options_.pages - free_ - cached_;
  now.page_size = options_.page_size;
  now.voices_cached = voices_.count();
  return now;
}

PageId PagePool::take() {
  if (free_ == 0) {
    forget(idle_.first(kCached));
    ++counters_.evictions;
  }
  const PageId page = idle_.first(kFree);
  idle_.remove(page);
  --free_;
  holders_[static_cast<size_t>(page)] = 1;
  return page;
}

PageId PagePool::take_beside(PageId source) {
  const bool cached = holders_[static_cast<size_t>(source)] == 0;
  if (cached) {  // to the end of the list: pages that follow it come before it; the pages that it follows are
                 // held
    idle_.remove(source);
    idle_.push_back(kCached, source);
  }
  return available() > (cached ? 1 : 0) ? take() : kNoPage;
}

void PagePool::hold(PageId page) {
  if (holders_[static_cast<size_t>(page)]++ > 0) return;
  idle_.remove(page);
  --cached_;
}

void PagePool::give_back(PageId page) {
  if (--holders_[static_cast<size_t>(page)] > 0) return;
  if (index_.contains(page)) {
    idle_.push_back(kCached, page);
    ++cached_;
  } else {
    idle_.push_front(kFree, page);
    ++free_;
  }
}

PageId PagePool::publish(PageId page, PageId parent, PrefixIndex::Ids ids, uint64_t voice) {
  const int64_t columns = static_cast<int64_t>(ids.size()) / options_.column_width;
  const auto [match, common] = index_.longest_match(parent, ids);
  if (common == columns) {
    if (columns < options_.page_size) return page;
    hold(match);
    give_back(page);
    return match;
  }
  // A page that holds nothing else: this one too, as it was before it grew.
  if (match != kNoPage && common == index_.columns(match)) forget(match);
  index_.insert(page, parent, ids);
  voice_of_[static_cast<size_t>(page)] = voice;
  voices_.add_page(voice);
  return page;
}

void PagePool::unindex(PageId page) {
  index_.remove(page);
  voices_.remove_page(voice_of_[static_cast<size_t>(page)]);
}

// A page without children leaves the index, and is free unless somebody holds it.
void PagePool::forget(PageId page) {
  unindex(page);
  if (holders_[static_cast<size_t>(page)] > 0) return;
  idle_.remove(page);
  idle_.push_front(kFree, page);
  --cached_;
  ++free_;
}

void PagePool::drop_cached() {
  while (cached_ > 0) forget(idle_.first(kCached));
}

void PagePool::limit_voices() {
  for (int64_t rank = voices_.count() - 1; rank >= 0 && voices_.count() > options_.max_voices; --rank)
    drop_cached_of(voices_.by_use(rank));
}

void PagePool::drop_cached_of(uint64_t voice) {
  for (PageId page = idle_.first(kCached), next; page != kNoPage; page = next) {
    next = idle_.after(page);
    uint64_t& owner = voice_of_[static_cast<size_t>(page)];
    if (owner != voice) continue;
    if (const PageId child = index_.some_child(page); child == kNoPage) {
      forget(page);
    } else {  // children come first, so these belong to another voice, which needs the pages before them
      voices_.remove_page(owner);
      owner = voice_of_[static_cast<size_t>(child)];
      voices_.add_page(owner);
    }
  }
}

}  // namespace shoal::runtime
