#include "models/kokoro/layout.h"

#include <algorithm>
#include <utility>

#include "ops/device_state.h"

namespace shoal::kokoro {

Layout::Layout(std::vector<int32_t> lengths) : lengths_(std::move(lengths)), total_(kGap) {
  for (const int32_t length : lengths_) {
    starts_.push_back(static_cast<int32_t>(total_));
    total_ += length + kGap;
  }
  // Convolutions write nothing into the last kGap frames (Rows::conv_count), but behind the last utterance
  // they must: the spectrum's extra row, and what a transposed one brings in late.
  ++total_;
}

Rows Layout::rows(ops::Context& ctx, const Tap* tap) const {
  Rows rows{.ctx = &ctx, .tap = tap, .segments = {.starts = starts_, .frames = lengths_, .total = total_}};
  if (ops::computes_by_itself(ctx.device)) {
    std::vector<int32_t> tables(starts_);
    tables.insert(tables.end(), lengths_.begin(), lengths_.end());
    rows.segments.tables = ops::upload(ctx, tables).reshape({2, count()});
  }
  return rows;
}

std::vector<int32_t> Layout::utterance_of_row() const {
  std::vector<int32_t> owner(static_cast<size_t>(total_), 0);
  for (size_t i = 0; i < lengths_.size(); ++i)
    std::fill_n(owner.begin() + starts_[i], lengths_[i], static_cast<int32_t>(i));
  return owner;
}

}  // namespace shoal::kokoro
