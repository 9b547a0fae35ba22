// Byte-pair merging of one piece of text.
#pragma once

#include <array>
#include <cstdint>
#include <queue>
#include <string_view>
#include <vector>

namespace shoal::text {

// Starts from the tokens of single bytes and repeatedly merges the adjacent pair of lowest rank (leftmost on
// ties) until no pair has one. O(n log n) in the bytes of the piece, also for one letter a million times.
// Holds scratch memory: one per thread.
class BytePairMerger {
 public:
  struct Part {
    int32_t begin, end;  // bytes of the piece
    int32_t id;          // its token
  };
  struct Merge {
    int32_t rank = -1;  // none
    int32_t id = -1;    // token of the pair
  };

  // merge_of(left, right) -> Merge, for adjacent parts of this piece. Appends the tokens to `ids`.
  template <typename MergeOf>
  void merge(std::string_view piece, const std::array<int32_t, 256>& byte_ids, MergeOf&& merge_of,
             std::vector<int32_t>& ids) {
    start(piece, byte_ids);
    const int32_t count = static_cast<int32_t>(piece.size());
    for (int32_t i = 0; i + 1 < count; ++i) offer(i, merge_of);
    while (!candidates_.empty()) {
      const Candidate best = candidates_.top();
      candidates_.pop();
      Node& left = nodes_[static_cast<size_t>(best.left)];
      // Parts only grow, so a pair with the same two ends is the pair that was offered.
      if (!left.alive || left.next < 0 || nodes_[static_cast<size_t>(left.next)].part.end != best.end)
        continue;
      join(best);
      if (left.previous >= 0) offer(left.previous, merge_of);
      offer(best.left, merge_of);
    }
    for (int32_t i = 0; i >= 0; i = nodes_[static_cast<size_t>(i)].next)
      ids.push_back(nodes_[static_cast<size_t>(i)].part.id);
  }

 private:
  struct Node {
    Part part;
    int32_t previous, next;  // -1 at the ends
    bool alive;
  };
  struct Candidate {
    int32_t rank, left, end, id;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };

  void start(std::string_view piece, const std::array<int32_t, 256>& byte_ids) {
    nodes_.clear();
    const int32_t count = static_cast<int32_t>(piece.size());
    for (int32_t i = 0; i < count; ++i) {
      const int32_t id = byte_ids[static_cast<uint8_t>(piece[static_cast<size_t>(i)])];
      nodes_.push_back({{i, i + 1, id}, i - 1, i + 1 < count ? i + 1 : -1, true});
    }
  }

  // Puts the pair of this part and the next into the queue if it can merge.
  template <typename MergeOf>
  void offer(int32_t left, MergeOf& merge_of) {
    const Node& a = nodes_[static_cast<size_t>(left)];
    if (a.next < 0) return;
    const Node& b = nodes_[static_cast<size_t>(a.next)];
    const Merge merge = merge_of(a.part, b.part);
    if (merge.rank >= 0) candidates_.push({merge.rank, left, b.part.end, merge.id});
  }

  void join(const Candidate& pair) {
    Node& left = nodes_[static_cast<size_t>(pair.left)];
    Node& right = nodes_[static_cast<size_t>(left.next)];
    left.part.end = pair.end;
    left.part.id = pair.id;
    right.alive = false;
    left.next = right.next;
    if (left.next >= 0) nodes_[static_cast<size_t>(left.next)].previous = pair.left;
  }

  std::vector<Node> nodes_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates_;
};

}  // namespace shoal::text
