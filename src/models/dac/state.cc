#include "models/dac/state.h"

#include <algorithm>

#include "ops/transfer.h"

namespace shoal::dac {
namespace {

// Keys, or values, of a layer.
Shape pages_of(const RingSpec& ring, int64_t slots) {
  return {slots * ring.pages, ring.heads, kPageSize, ring.head_dim};
}

}  // namespace

History StateLayout::add_history(int64_t rows, int64_t width) {
  if (rows == 0) return {};
  const History history{floats_, rows, width};
  floats_ += (rows * width + 15) / 16 * 16;  // every history starts a cache line
  return history;
}

int StateLayout::add_ring(int64_t layers, int64_t heads, int64_t head_dim, int64_t window,
                          int64_t largest_piece) {
  // A span of n positions that starts anywhere in a page touches at most (n - 2) / page + 2 pages.
  const int64_t span = std::max<int64_t>(2, window - 1 + largest_piece);
  rings_.push_back({layers, heads, head_dim, (span - 2) / kPageSize + 2});
  return static_cast<int>(rings_.size()) - 1;
}

int64_t StateLayout::bytes_per_slot(DType kv_dtype) const {
  int64_t bytes = history_floats() * size_of(DType::f32);
  for (const RingSpec& ring : rings_)
    bytes += ring.layers * 2 * pages_of(ring, /*slots=*/1).elements() * size_of(kv_dtype);
  return bytes;
}

StateSlots::StateSlots(const StateLayout& layout, int slots, DType kv_dtype, const ops::Context& ctx)
    : taken_(static_cast<size_t>(std::max(slots, 0))) {
  if (slots < 1) fail(ErrorCode::invalid_argument, "codec state: expected at least 1 stream, got ", slots);
  histories_ = ops::new_tensor(ctx, DType::f32, {slots, layout.history_floats()});
  for (const RingSpec& spec : layout.rings()) {
    Ring ring{spec, {}, {}};
    const Shape shape = pages_of(spec, slots);
    for (int64_t layer = 0; layer < spec.layers; ++layer) {
      ring.k.push_back(ops::new_tensor(ctx, kv_dtype, shape));
      ring.v.push_back(ops::new_tensor(ctx, kv_dtype, shape));
    }
    rings_.push_back(std::move(ring));
  }
}

int StateSlots::leased() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::count(taken_.begin(), taken_.end(), true));
}

int64_t StateSlots::bytes_per_slot() const {
  int64_t bytes = histories_.bytes();
  for (const Ring& ring : rings_) {
    for (const Tensor& tensor : ring.k) bytes += 2 * tensor.bytes();
  }
  return bytes / slots();
}

int StateSlots::lease() {
  const std::lock_guard lock(mutex_);
  const auto free = std::find(taken_.begin(), taken_.end(), false);
  if (free == taken_.end())
    fail(ErrorCode::resource_exhausted, "codec state: all ", slots(), " streams are in use");
  const int slot = static_cast<int>(free - taken_.begin());
  *free = true;
  return slot;
}

void StateSlots::give_back(int slot) {
  const std::lock_guard lock(mutex_);
  taken_[static_cast<size_t>(slot)] = false;
}

void StateSlots::clear(ops::Context& ctx, int slot) {
  ops::fill_zero(ctx, histories_.view().slice(slot, slot + 1));
}

ops::KvLayer StateSlots::kv(int ring, int64_t layer) const {
  const Ring& found = rings_[static_cast<size_t>(ring)];
  return {found.k[static_cast<size_t>(layer)], found.v[static_cast<size_t>(layer)]};
}

}  // namespace shoal::dac
