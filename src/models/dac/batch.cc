#include "models/dac/batch.h"

#include "base/error.h"

namespace shoal::dac {

Batch Batch::at_rate(int64_t factor) const {
  const auto offsets = host_array<int32_t>(workspace(), sequences() + 1);
  const auto scaled = host_array<int64_t>(workspace(), sequences());
  CHECK(rows.rows() <= INT32_MAX / factor, rows.rows(), " rows at ", factor, " times the rate");
  for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<int32_t>(rows.offsets[i] * factor);
  for (size_t i = 0; i < scaled.size(); ++i) scaled[i] = starts[i] * factor;
  Batch other = *this;
  other.rows = {offsets};
  other.starts = scaled;
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
  const auto offsets = host_array<int32_t>(workspace(), count + 1);
  const auto moved = host_array<int64_t>(workspace(), count);
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
  return other;
}

std::span<const TensorView> Batch::histories(const History& history) const {
  const auto views = host_array<TensorView>(workspace(), sequences());
  if (history.rows == 0) return views;
  for (size_t i = 0; i < views.size(); ++i) {
    views[i] = TensorView(state->histories(slots[i]) + history.offset, DType::f32,
                          {history.rows, history.width}, ctx->device);
  }
  return views;
}

}  // namespace shoal::dac
