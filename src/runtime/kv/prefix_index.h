// Which pages hold which beginning of a prompt.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/kv/page_lists.h"
#include "runtime/kv/page_trees.h"

namespace shoal::runtime {

// A tree: the path from the root to a page is a prefix of prompts, its pages full except perhaps the last.
// Full pages are found by a hash chain (XXH3 of their ids, seeded by the key of the page before); partly
// filled pages, and pages that begin like a prompt and then differ, among the children of the page before,
// which stand in the order of their ids: what shares the most with a prompt is its neighbour there. Ids are
// always compared. No page holds only columns that another child of the same parent holds, too. The index
// does not know who holds a page. Only the constructor allocates.
class PrefixIndex {
 public:
  // pages of page_size columns of column_width ids, each at least 1.
  PrefixIndex(int64_t pages, int64_t page_size, int64_t column_width);

  // parent: the page before, or kNoPage at the beginning; it is in the index and full. ids: as many columns
  // as can be compared, not more than page_size.
  using Ids = std::span<const int32_t>;

  // The page after `parent` with exactly these page_size columns; kNoPage when there is none.
  PageId find(PageId parent, Ids ids) const;
  struct Match {
    PageId page = kNoPage;
    int64_t columns = 0;
  };
  // The page after `parent` that shares the most leading columns with `ids`; kNoPage when none shares one. If
  // one holds nothing but columns of `ids`, it is this one: no other holds all of them.
  Match longest_match(PageId parent, Ids ids) const;
  // The page must not be in the index. 1 to page_size columns; no other child of `parent` may hold them all,
  // or hold nothing but columns that are among them.
  void insert(PageId page, PageId parent, Ids ids);
  // The page must have no children.
  void remove(PageId page);

  bool contains(PageId page) const { return node(page).columns > 0; }
  bool is_full(PageId page) const { return node(page).columns == page_size_; }
  int64_t columns(PageId page) const { return node(page).columns; }  // 0: not in the index
  PageId parent(PageId page) const { return node(page).parent; }
  Ids ids(PageId page) const;
  // parent kNoPage: the pages at the beginning.
  bool has_children(PageId parent) const { return some_child(parent) != kNoPage; }
  PageId some_child(PageId parent) const { return children_.any(children_of(parent)); }  // or kNoPage
  template <typename Visit>
  void each_child(PageId parent, const Visit& visit) const {
    children_.each(children_of(parent), visit);
  }

 private:
  struct Node {
    uint64_t key = 0;  // of a full page
    int64_t columns = 0;
    PageId parent = kNoPage;
  };

  const Node& node(PageId page) const { return nodes_[static_cast<size_t>(page)]; }
  int64_t children_of(PageId parent) const {
    return parent == kNoPage ? static_cast<int64_t>(nodes_.size()) : parent;
  }
  uint64_t key_of(PageId parent, Ids ids) const;
  int64_t bucket_of(uint64_t key) const { return static_cast<int64_t>(key & bucket_mask_); }
  // Where ids stand to those of a page, and how many leading ones they share.
  struct Comparison {
    int order;
    int64_t common;
  };
  Comparison compare(Ids ids, PageId page) const;

  int64_t page_size_, column_width_;
  uint64_t bucket_mask_;
  std::vector<Node> nodes_;
  std::unique_ptr<int32_t[]> ids_;  // [pages, page_size, column_width]; the system gives it as it is written
  PageTrees children_;              // of each page, and of the root
  PageLists buckets_;               // full pages by key
};

}  // namespace shoal::runtime
