#include "models/kokoro/layout.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>
#include <utility>

#include "ops/device_state.h"

namespace shoal::kokoro {
namespace {

// Convolutions write nothing into the last kGap frames (Rows::conv_count), except after the last utterance:
// the spectrum's extra row, and the late rows of a transposed convolution.
int64_t total_of(std::span<const int32_t> lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), (std::ssize(lengths) + 1) * kGap + 1);
}

}  // namespace

Layout::Layout(std::vector<int32_t> lengths) : Layout(lengths, total_of(lengths)) {}

Layout::Layout(std::vector<int32_t> lengths, int64_t total) : lengths_(std::move(lengths)), total_(total) {
  int64_t begin = kGap;
  for (const int32_t length : lengths_) {
    starts_.push_back(static_cast<int32_t>(begin));
    begin += length + kGap;
  }
}

Layout Layout::recorded(int32_t length) { return {{length}, recorded_total(length)}; }

// The next of eight sizes between two powers of two.
int64_t Layout::recorded_total(int64_t frames) {
  const int64_t total = frames + 2 * kGap + 1;
  const auto step =
      std::max<int64_t>(2, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(total))) / 8);
  return (total + step - 1) / step * step;
}

int64_t Layout::recorded_sizes(int64_t frames) {
  int64_t sizes = 0, last = 0;
  for (int64_t f = 1; f <= frames; ++f) {
    sizes += recorded_total(f) != last;
    last = recorded_total(f);
  }
  return sizes;
}

Rows Layout::rows(ops::Context& ctx, TensorView tables) const {
  return {.ctx = &ctx,
          .segments = {.starts = starts_, .frames = lengths_, .total = total_, .tables = tables}};
}

Rows Layout::rows(ops::Context& ctx, const Tap* tap, const BetweenStages* between) const {
  Rows rows = this->rows(ctx, TensorView());
  rows.tap = tap;
  rows.between = between;
  if (ops::computes_by_itself(ctx.device))
    rows.segments.tables = ops::upload(ctx, tables()).reshape({2, count()});
  return rows;
}

std::vector<int32_t> Layout::tables() const {
  std::vector<int32_t> tables(starts_);
  tables.insert(tables.end(), lengths_.begin(), lengths_.end());
  return tables;
}

std::vector<int32_t> Layout::utterance_of_row() const {
  std::vector<int32_t> owner(static_cast<size_t>(total_), 0);
  for (size_t i = 0; i < lengths_.size(); ++i)
    std::fill_n(owner.begin() + starts_[i], lengths_[i], static_cast<int32_t>(i));
  return owner;
}

}  // namespace shoal::kokoro
