// The memory of a generation step. Its address never changes, so that a step can be captured in a CUDA graph
// and replayed (ops/step_graph.h): inputs that vary from step to step are written here and copied to the
// device at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/dual_ar/config.h"
#include "models/dual_ar/generation.h"
#include "ops/context.h"
#include "ops/draw.h"
#include "ops/step_graph.h"
#include "tensor/tensor.h"

namespace shoal::dual_ar {

// Ids that are the same in every step, for the host and for kernels.
struct ConstantIds {
  ConstantIds() = default;
  ConstantIds(ops::Context& ctx, std::vector<int32_t> values);
  std::span<const int32_t> first(int64_t count) const {
    return std::span(host).first(static_cast<size_t>(count));
  }
  TensorView device_first(int64_t count) const { return device.view().slice(0, count); }

  std::vector<int32_t> host;
  Tensor device;
};

// The arrays of a step of `rows` sequences with one row each.
struct StepArrays {
  int64_t frames_bytes = 0, bytes = 0;  // of the block: the frames that come back, and everything
  std::span<int32_t> frames;            // [rows, 1 + num_codebooks], drawn
  std::span<int32_t> columns;           // [rows, 1 + num_codebooks], fed in
  std::span<int32_t> positions;         // [rows]; below 0: padding
  std::span<int32_t> page_table;        // [rows, pages_per_sequence]
  std::span<ops::DrawRow> draws;        // [rows]
  std::span<int32_t> penalised_codes;   // [rows, num_codebooks, kPenaltyWindow]
  // The device's side of them.
  TensorView device_frames, device_columns;
  ops::PlanTables tables;
  ops::DrawTable draw_table;
};

class StepMemory {
 public:
  // For steps of at most `rows` sequences, with page tables of `pages_per_sequence`. Throws
  // Error(resource_exhausted).
  StepMemory(ops::Context& ctx, const Config& config, int64_t rows, int64_t pages_per_sequence);

  int64_t rows() const { return rows_; }
  int64_t pages_per_sequence() const { return pages_per_sequence_; }
  // f32 [rows, slow.dim]: the states that frames are drawn from; for the caller to have them written.
  TensorView hidden() const { return hidden_; }
  int64_t bytes() const { return hidden_.bytes() + block_.bytes(); }

  // The same before there is one.
  static int64_t bytes_of(const Config& config, int64_t rows, int64_t pages_per_sequence);
  // How many rows a step of `rows` is made with where steps are recorded, in memory for any number of them.
  static int64_t recorded_rows(int64_t rows);
  // How many such sizes steps of at most `rows` have.
  static int64_t recorded_sizes(int64_t rows);

 private:
  friend class DualAr;
  friend class FastFrame;

  StepArrays arrays(int64_t rows) const;
  // The number of rows with which a step of `rows` runs: the same, or, with CUDA graphs, rounded up, so that
  // a few graphs serve all sizes. At most rows().
  int64_t padded_rows(const ops::Context& ctx, int64_t rows) const;
  // Writes how rows [0, requests) are drawn; rows from there on are padding.
  void write(const StepArrays& arrays, std::span<const FrameRequest> requests) const;
  // Writes the input: one column for each sequence of the plan.
  void write(const StepArrays& arrays, const ops::BatchPlan& plan, std::span<const int32_t> columns) const;

  int64_t serial_;   // new_step_serial
  int64_t columns_;  // 1 + num_codebooks
  int64_t codebooks_;
  int64_t rows_, pages_per_sequence_;
  Tensor hidden_;
  ops::StepBlock block_;
  ConstantIds counting_;                       // 0, 1, 2, ...: offsets, sequences and pages of single rows
  ConstantIds pair_offsets_, pair_sequences_;  // of two rows per sequence: 0, 2, 4, ... and 0, 0, 1, 1, ...
  ConstantIds pair_positions_;                 // 0, 1, 0, 1, ...
  std::vector<ConstantIds> pass_positions_;    // [num_codebooks]: p, p, p, ...
};

}  // namespace shoal::dual_ar
