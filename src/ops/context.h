// What an op needs besides its operands.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "base/thread_team.h"
#include "tensor/tensor.h"
#include "tensor/workspace.h"

namespace shoal::ops {

// One per thread of execution (engine thread, codec thread). Models pass it on and never look inside.
struct Context {
  Device device;
  ThreadTeam* team = nullptr;      // CPU workers; never null
  Workspace* workspace = nullptr;  // scratch of the current step; never null
  void* stream = nullptr;          // CUDA stream of this context; null on the CPU
};

// Rows of several sequences, end to end: sequence s owns rows [offsets[s], offsets[s + 1]).
// offsets[0] == 0. A sequence may have no rows.
struct RaggedRows {
  std::span<const int32_t> offsets;

  int sequences() const { return static_cast<int>(offsets.size()) - 1; }
  int64_t rows() const { return offsets.back(); }
  int64_t begin(int sequence) const { return offsets[static_cast<size_t>(sequence)]; }
  int64_t count(int sequence) const { return offsets[static_cast<size_t>(sequence) + 1] - begin(sequence); }
};

// Where the rows of a batch stand in their sequences and in the KV pages. Planned once per step, used by
// every layer.
struct BatchPlan {
  RaggedRows rows;
  std::span<const int32_t> positions;   // [rows] absolute position of each row in its sequence
  std::span<const int32_t> page_table;  // [sequences, pages_per_sequence]: logical page -> physical page
  int64_t pages_per_sequence = 0;
  int64_t page_size = 0;  // tokens per page
};

// One layer's keys and values. k, v: [pages, kv_heads, page_size, head_dim], f32 or bf16.
struct KvLayer {
  TensorView k, v;
};

}  // namespace shoal::ops
