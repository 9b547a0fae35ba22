// Tracks the owners of pages of keys and values, and which pages hold a prompt that may come again.
// Bookkeeping only: the memory is dual_ar::KvCache's. Engine thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "shoal/statistics.h"

namespace shoal::runtime {

using PageId = int32_t;

// Copy one page over another in every layer before anything else is written; several in the order in which
// their sequences were made.
struct PageCopy {
  PageId from = -1, to = -1;
};

class KvPages {
 public:
  struct Options {
    int64_t pages = 0;         // >= 1
    int64_t page_size = 0;     // columns, >= 1
    int64_t column_width = 0;  // ids of a column, >= 1
    bool cache = true;         // keep the pages of prompts that no sequence holds
    int64_t max_voices = 100;  // whose pages are kept; beyond that, the least recently used voice loses its
                               // pages except those that sequences hold
  };
  explicit KvPages(const Options& options);
  ~KvPages();  // every SequencePages must be gone
  KvPages(const KvPages&) = delete;
  KvPages& operator=(const KvPages&) = delete;

  const Options& options() const;
  // Pages that can be taken now: free ones and those that only the cache holds.
  int64_t available() const;
  // Forgets every prefix that only the cache holds; pages that sequences hold stay theirs and can be found.
  void drop_cached();
  KvStatistics statistics() const;
  // Throws Error(internal) unless every page is exactly one of used, cached, free, and every count is the
  // number of its holders. For tests, after any traffic.
  void check_invariants() const;

 private:
  friend class SequencePages;
  struct State;
  std::unique_ptr<State> state_;
};

// The pages of one sequence; its destructor releases them. Move-only.
//
// A prompt's full pages are found again by a hash chain: the key of a page is the hash of the previous key
// and of the page's own ids, and a hit counts only if the ids are equal. The page after the last full hit may
// begin like the prompt and then differ: its common columns are reused by copying the page (copy-on-write),
// because the sequence will write after them.
class SequencePages {
 public:
  SequencePages() = default;  // no pages, no pool
  // Holds the longest cached prefix of `prompt` ([columns, column_width]), but never its last column, which
  // must be computed for its hidden state. voice: the owner of the prefix, for max_voices; 0: none. If
  // copying the tail needs a page and none is available, the tail is not reused.
  SequencePages(KvPages& pages, uint64_t voice, std::span<const int32_t> prompt);
  SequencePages(SequencePages&& other) noexcept;
  SequencePages& operator=(SequencePages&& other) noexcept;
  ~SequencePages();

  // Columns whose keys and values are there already; tail_copy() of them after the copy.
  int64_t cached_columns() const;
  std::optional<PageCopy> tail_copy() const;

  // Holds pages for `columns` columns in all. Returns false and changes nothing if there are not enough.
  // Allocates nothing (no std::bad_alloc) once reserve_table(columns) has been called.
  bool hold(int64_t columns);
  void reserve_table(int64_t columns);
  // Logical page -> physical page. Valid until the next call that is not const.
  std::span<const PageId> table() const;
  // How many of them, from the first, other sequences hold too: releasing those frees nothing.
  int64_t shared_pages() const;

  // The first `written` columns of the prompt have been computed: other sequences can now find their full
  // pages and the partly filled one. If another sequence has already published an equal full page, this one
  // is released and the other is used, so the table may change: read it again. Cheap when nothing new is
  // written.
  void publish(std::span<const int32_t> prompt, int64_t written);

  // Gives everything back; as default-constructed afterwards.
  void release();

 private:
  void find_prefix(std::span<const int32_t> prompt, int64_t columns);
  void take_tail(std::span<const int32_t> ids);

  KvPages::State* pool_ = nullptr;
  std::vector<PageId> table_;
  uint64_t voice_ = 0;
  int64_t cached_columns_ = 0;
  int64_t published_columns_ = 0;
  std::optional<PageCopy> tail_copy_;
};

}  // namespace shoal::runtime
