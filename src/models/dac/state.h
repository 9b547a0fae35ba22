// The carried state of a sequence of streaming layers: how much each layer needs, and slots that hold it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <vector>

#include "ops/context.h"
#include "tensor/tensor.h"

namespace shoal::dac {

// Tokens per key/value page.
constexpr int64_t kPageSize = 16;

// The last inputs of one convolution: f32 [rows, width] at `offset` in a slot's floats. No rows: no memory.
struct History {
  int64_t offset = 0;
  int64_t rows = 0;
  int64_t width = 0;
};

// Keys and values of one window transformer: each slot owns `pages` pages of every layer and uses them as a
// ring, so logical page p of a sequence is page p % pages of its slot.
struct RingSpec {
  int64_t layers = 0, heads = 0, head_dim = 0;
  int64_t pages = 0;
};

// Adds up the state that the layers of a model need; each layer registers itself while loading.
class StateLayout {
 public:
  History add_history(int64_t rows, int64_t width);
  // The ring holds window - 1 past positions and `largest_piece` new ones. Returns its index.
  int add_ring(int64_t layers, int64_t heads, int64_t head_dim, int64_t window, int64_t largest_piece);

  // Of one slot of a StateSlots.
  int64_t bytes_per_slot(DType kv_dtype) const;
  // The floats of a slot's histories, at least some.
  int64_t history_floats() const { return std::max<int64_t>(16, floats_); }
  const std::vector<RingSpec>& rings() const { return rings_; }

 private:
  int64_t floats_ = 0;
  std::vector<RingSpec> rings_;
};

// Memory for the states of `slots` sequences. Keys and values have the dtype of the model's matrices.
class StateSlots {
 public:
  StateSlots(const StateLayout& layout, int slots, DType kv_dtype, const ops::Context& ctx);

  int slots() const { return static_cast<int>(taken_.size()); }
  int leased() const;
  int64_t bytes() const { return bytes_per_slot() * slots(); }
  int64_t bytes_per_slot() const;

  // Leases a slot, which must be cleared before its first use. Throws Error(resource_exhausted) when none is
  // free. Thread-safe, like give_back.
  int lease();
  void give_back(int slot);
  // Resets to zeros, the state before the first input. Keys and values need no clearing: positions before 0
  // are never read.
  void clear(ops::Context& ctx, int slot);

  // f32 [slots, floats]: the histories of every convolution, one slot a row.
  TensorView histories() const { return histories_; }
  const RingSpec& ring(int index) const { return rings_[static_cast<size_t>(index)].spec; }
  ops::KvLayer kv(int ring, int64_t layer) const;

 private:
  struct Ring {
    RingSpec spec;
    std::vector<Tensor> k, v;  // per layer [slots * pages, heads, page size, head_dim]
  };
  Tensor histories_;
  std::vector<Ring> rings_;
  mutable std::mutex mutex_;  // guards taken_
  std::vector<bool> taken_;
};

}  // namespace shoal::dac
