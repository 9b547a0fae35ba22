// What an op needs besides its operands.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "base/thread_team.h"
#include "tensor/tensor.h"
#include "tensor/workspace.h"

namespace shoal::ops {

class StepGraphs;  // step_graph.h
class Stream;      // stream.h

// One per thread of execution (engine thread, codec thread). Models pass it on and never look inside.
// Work is done in the order it is given; on a GPU it may not have been done yet when an op returns.
struct Context {
  Device device;
  ThreadTeam* team = nullptr;      // CPU workers; never null
  Workspace* workspace = nullptr;  // scratch of the current step in the device's memory; never null
  Stream* stream = nullptr;        // of a GPU; null on the CPU
  Workspace* host = nullptr;       // scratch that the host writes; null: `workspace` is such memory
  StepGraphs* graphs = nullptr;    // launches recorded for replay; null: none are

  Workspace& host_memory() const { return host ? *host : *workspace; }
};

// Whether nothing is computed: ops check their operands and take their scratch of a workspace that counts
// (planning_context.h).
inline bool is_planning(const Context& ctx) { return ctx.workspace->counts_only(); }

inline bool on_cpu(const Context& ctx) { return ctx.device.kind == DeviceKind::cpu; }

// Rows of several sequences, end to end: sequence s owns rows [offsets[s], offsets[s + 1]).
// offsets[0] == 0. A sequence may have no rows.
struct RaggedRows {
  std::span<const int32_t> offsets;

  int sequences() const { return static_cast<int>(offsets.size()) - 1; }
  int64_t rows() const { return offsets.back(); }
  int64_t begin(int sequence) const { return offsets[static_cast<size_t>(sequence)]; }
  int64_t count(int sequence) const { return offsets[static_cast<size_t>(sequence) + 1] - begin(sequence); }
};

// The arrays of a BatchPlan where kernels can read them: i32, dense.
struct PlanTables {
  TensorView offsets;        // [sequences + 1]
  TensorView positions;      // [rows]; below 0: a row of padding, which reads and writes no keys and values
  TensorView sequences;      // [rows] which sequence the row is of
  TensorView page_table;     // [sequences, pages_per_sequence]
  bool single_rows = false;  // every sequence has one row (a decode step)
};

// The positions of a batch's rows in their sequences and in the KV pages. Planned once per step, used by
// every layer. The host's arrays are for the CPU and for checks; a GPU's kernels read only `tables`, and only
// the sizes of the host's arrays.
struct BatchPlan {
  RaggedRows rows;
  std::span<const int32_t> positions;  // [rows] absolute position of each row in its sequence
  // [sequences, pages_per_sequence]: logical page -> physical page. Entries for positions that no row sees
  // may have any value.
  std::span<const int32_t> page_table;
  int64_t pages_per_sequence = 0;
  int64_t page_size = 0;   // tokens per page
  PlanTables tables = {};  // on_device (transfer.h) fills them; empty on the CPU
};

// One layer's keys and values. k, v: [pages, kv_heads, page_size, head_dim], f32, bf16 or (GPU) f16.
// Scales: [pages, kv_heads, page_size], of formats that have one for each token and head; the three above
// have none.
struct KvLayer {
  TensorView k, v;
  TensorView k_scales = {}, v_scales = {};
};

}  // namespace shoal::ops
