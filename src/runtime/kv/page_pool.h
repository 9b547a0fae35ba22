// Tracks which pages sequences hold, which the prefix cache holds, and which are free.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/kv/kv_pages.h"
#include "runtime/kv/page_lists.h"
#include "runtime/kv/prefix_index.h"
#include "runtime/kv/voice_uses.h"

namespace shoal::runtime {

// A page is used (it has holders), cached (it has none but is in the index) or free. A holder of an indexed
// page also holds all pages before it, and a sequence releases its pages last one first. Hence no page after
// a cached page has a holder, and in the list of cached pages a page stands behind all its children: evicting
// from the front takes children before parents and the least recently used first, and leaves no unreachable
// page.
//
// Only the constructor allocates; nothing else here throws.
class PagePool {
 public:
  explicit PagePool(const KvPages::Options& options);

  const KvPages::Options& options() const { return options_; }
  const PrefixIndex& index() const { return index_; }
  int64_t available() const { return free_ + cached_; }
  KvStatistics statistics() const;
  KvStatistics& counters() { return counters_; }

  // A page for one holder, free or else evicted. There must be one available.
  PageId take();
  // The same, but never `source`, which counts as used now and whose parent the caller holds; kNoPage when
  // there is no other.
  PageId take_beside(PageId source);
  bool is_shared(PageId page) const { return holders_[static_cast<size_t>(page)] > 1; }
  // One holder more of an indexed page.
  void hold(PageId page);
  // One less. The caller's pages last one first, then limit_voices().
  void give_back(PageId page);

  // The columns `ids` after `parent` have been written to `page`; the caller is its only holder. Full pages:
  // returns the page to continue with; if another page has the same content it returns that one and releases
  // `page`. A partly filled page is indexed again each time it has grown, unless another page has the same
  // columns and more.
  PageId publish(PageId page, PageId parent, PrefixIndex::Ids ids, uint64_t voice);

  void touch_voice(uint64_t voice) { voices_.touch(voice); }
  // While too many voices have indexed pages, the least recently used ones lose theirs, except pages that
  // sequences hold.
  void limit_voices();
  void drop_cached();

  // holders: how many sequences hold each page. Throws Error(internal).
  void check_invariants(std::span<const int64_t> holders) const;

 private:
  enum List : int64_t { kFree, kCached };

  void unindex(PageId page);
  void forget(PageId page);
  void drop_cached_of(uint64_t voice);
  void check_lists(std::span<const int64_t> holders) const;
  void check_tree() const;
  void check_voices() const;

  KvPages::Options options_;
  PrefixIndex index_;
  // Free pages, the last one freed first (a quiet engine touches few of them), and cached ones by last use. A
  // used page is in neither list.
  PageLists idle_;
  std::vector<int64_t> holders_;
  std::vector<uint64_t> voice_of_;  // of indexed pages
  VoiceUses voices_;
  int64_t free_ = 0, cached_ = 0;
  KvStatistics counters_;  // those that only increase
};

}  // namespace shoal::runtime
