// The positions of the utterances of a batch in its buffers.
#pragma once

#include <cstdint>
#include <vector>

#include "models/kokoro/rows.h"

namespace shoal::kokoro {

// Utterances end to end, with kGap empty frames before, between and after them. Owns the arrays.
class Layout {
 public:
  // lengths: of each utterance, in frames (or tokens), at least 1.
  explicit Layout(std::vector<int32_t> lengths);
  // The layout of one utterance for a CUDA graph: with a longer gap after it, so that a few graphs serve all
  // lengths.
  static Layout recorded(int32_t length);
  // total() of that layout for this many frames.
  static int64_t recorded_total(int64_t frames);
  // How many totals there are up to that one.
  static int64_t recorded_sizes(int64_t frames);

  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  int64_t count() const { return static_cast<int64_t>(lengths_.size()); }
  int64_t total() const { return total_; }
  int64_t begin(int64_t utterance) const { return starts_[static_cast<size_t>(utterance)]; }
  int64_t length(int64_t utterance) const { return lengths_[static_cast<size_t>(utterance)]; }
  // One row per frame. Arrays for kernels are in the context's enclosing scope.
  Rows rows(ops::Context& ctx, const Tap* tap, const BetweenStages* between = nullptr) const;
  // The same where the tables are in the device's memory already: i32 [2, count].
  Rows rows(ops::Context& ctx, TensorView tables) const;
  // The tables for kernels (ops::Segments::tables). -> [2, count]
  std::vector<int32_t> tables() const;
  // The utterance of every row; gaps belong to the first.   -> [total]
  std::vector<int32_t> utterance_of_row() const;

 private:
  Layout(std::vector<int32_t> lengths, int64_t total);

  std::vector<int32_t> starts_, lengths_;
  int64_t total_ = 0;
};

}  // namespace shoal::kokoro
