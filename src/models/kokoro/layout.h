// Where the utterances of a batch lie.
#pragma once

#include <cstdint>
#include <vector>

#include "models/kokoro/rows.h"

namespace shoal::kokoro {

// Utterances end to end, with kGap frames of nothing before, between and behind them. The arrays live here.
class Layout {
 public:
  // lengths: of each utterance, in frames (or tokens), at least 1.
  explicit Layout(std::vector<int32_t> lengths);
  // As steps are recorded, so that few recordings serve all: further utterances of one frame, until there are
  // 1 or kMostRecorded, and a longer gap behind the last.   lengths: at most kMostRecorded.
  static Layout recorded(std::vector<int32_t> lengths);
  static constexpr int64_t kMostRecorded = 4;
  // total() of a recorded layout at most, when its utterances have so many frames together.
  static int64_t most_recorded(int64_t frames);
  // How many totals they have up to that one.
  static int64_t recorded_sizes(int64_t frames);

  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  int64_t count() const { return static_cast<int64_t>(lengths_.size()); }
  int64_t total() const { return total_; }
  int64_t begin(int64_t utterance) const { return starts_[static_cast<size_t>(utterance)]; }
  int64_t length(int64_t utterance) const { return lengths_[static_cast<size_t>(utterance)]; }
  // One row a frame. What kernels read lies in the context's enclosing scope.
  Rows rows(ops::Context& ctx, const Tap* tap) const;
  // The same where the tables are in the device's memory already: i32 [2, count].
  Rows rows(ops::Context& ctx, TensorView tables) const;
  // What kernels read (ops::Segments::tables).   -> [2, count]
  std::vector<int32_t> tables() const;
  // The utterance of every row; gaps belong to the first.   -> [total]
  std::vector<int32_t> utterance_of_row() const;

 private:
  Layout(std::vector<int32_t> lengths, int64_t total);

  std::vector<int32_t> starts_, lengths_;
  int64_t total_ = 0;
};

}  // namespace shoal::kokoro
