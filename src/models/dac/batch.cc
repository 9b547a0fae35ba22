#include "models/dac/batch.h"

#include "base/error.h"

namespace shoal::dac {

Batch Batch::at_rate(int64_t factor) const {
  const auto offsets = host_array<int32_t>(*ctx, sequences() + 1);
  const auto scaled = host_array<int64_t>(*ctx, sequences());
  CHECK(rows.rows() <= INT32_MAX / factor, rows.rows(), " rows at ", factor, " times the rate");
  for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<int32_t>(rows.offsets[i] * factor);
  for (size_t i = 0; i < scaled.size(); ++i) scaled[i] = starts[i] * factor;
  Batch other = *this;
  other.rows = {offsets};
  other.starts = scaled;
  other.rate = rate * factor;
  return other;
}

Batch Batch::piece(int64_t begin, int64_t end) const {
  CHECK(0 <= begin && begin < end && end <= rows.rows(), "rows ", begin, "..", end, " of ", rows.rows());
  const auto cut = [&](int64_t row) {
    return std::upper_bound(rows.offsets.begin(), rows.offsets.end(), row);
  };
  const auto first = static_cast<size_t>(cut(begin) - rows.offsets.begin()) - 1;
  const auto last = static_cast<size_t>(cut(end - 1) - rows.offsets.begin()) - 1;
  const auto count = static_cast<int64_t>(last - first) + 1;
  const auto offsets = host_array<int32_t>(*ctx, count + 1);
  const auto moved = host_array<int64_t>(*ctx, count);
  for (size_t i = 0; i < offsets.size(); ++i) {
    const int64_t offset = rows.offsets[first + i];
    offsets[i] = static_cast<int32_t>(std::clamp(offset, begin, end) - begin);
  }
  for (size_t i = 0; i < moved.size(); ++i) {
    const int64_t offset = rows.offsets[first + i];
    moved[i] = starts[first + i] + std::max<int64_t>(0, begin - offset);
  }
  Batch other = *this;
  other.rows = {offsets};
  other.starts = moved;
  other.slots = slots.subspan(first, static_cast<size_t>(count));
  other.device_offsets = other.device_slots = {};
  other.rate = 1;
  return other;
}

int64_t Batch::end_of_piece(int64_t begin, int64_t most_of_one) const {
  for (int s = 0; s < sequences(); ++s) {
    const int64_t first = std::max(begin, rows.begin(s)), end = rows.begin(s) + rows.count(s);
    if (end - first > most_of_one) return first + most_of_one;
  }
  return rows.rows();
}

Batch Batch::on_device() const {
  Batch placed = *this;
  placed.device_offsets = ops::upload(*ctx, rows.offsets);
  placed.device_slots = ops::upload(*ctx, slots);
  placed.rate = 1;
  return placed;
}

Batch Batch::with_tables() const {
  const bool lacks = !ops::works_in_caches(ctx->device) && device_offsets.empty();
  return lacks ? on_device() : *this;
}

ops::ConvHistory Batch::history(const History& kept) const {
  if (kept.rows == 0) return {};
  return {state->histories(), kept.offset, slots};
}

}  // namespace shoal::dac
