// A causal transformer that looks back over a bounded window (MODEL.md, Blocks).
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "models/dac/batch.h"
#include "models/dac/loader.h"
#include "ops/attention.h"
#include "ops/packed_matrix.h"

namespace shoal::dac {

// Rotations by position, made as far as clips have needed so far: all kMaxPositions rows would be 84 MB, and
// few clips pass the first 4096. Thread-safe; a view stays valid while the table lives.
class RopeTable {
 public:
  RopeTable(int64_t first_rows, int64_t head_dim, double base);
  // f32 [at least positions, head_dim / 2, 2] in the memory of the context's device. The size grows in steps,
  // so the table is the same for many numbers of positions. positions <= kMaxPositions.
  TensorView covering(ops::Context& ctx, int64_t positions) const;

 private:
  struct Level {
    std::once_flag made;
    int64_t rows = 0;
    Tensor table;
  };
  int64_t head_dim_;
  double base_;
  mutable std::array<Level, 20> levels_;  // each twice the rows of the one before
};

struct WindowTransformerShape {
  int64_t layers = 0, dim = 0, heads = 0, head_dim = 0, intermediate = 0;
  int64_t channels = 0;       // of the rows that go in and come out
  int64_t window = 0;         // a row sees itself and the window - 1 rows before it
  int64_t block_size = 0;     // RoPE rows to make at load
  int64_t largest_piece = 0;  // rows of one sequence in one plan
  double rope_base = 0;
  float eps = 0;
};

class WindowTransformer {
 public:
  WindowTransformer(Loader& loader, const std::string& prefix, const WindowTransformerShape& shape);

  // The positions of rows of a call; the same for every layer. The page table is as wide as the rotation
  // table is long, so that its size seldom changes.
  struct Plan {
    ops::BatchPlan batch;
    TensorView rope;
  };
  // The rotations for the rows of a batch. Throws Error(too_large) for a row at position kMaxPositions or
  // beyond.
  TensorView rope_for(const Batch& batch) const;
  // Pages of the page table of each sequence, for rotations of that many positions.
  static int64_t table_pages(int64_t positions) { return (positions + kPageSize - 1) / kPageSize; }
  // positions: [rows]; page_table: [sequences, pages].
  void write_plan(const Batch& batch, std::span<int32_t> positions, std::span<int32_t> page_table) const;
  // All of the above in the memory of the enclosing scopes.
  Plan plan(const Batch& batch) const;

  // x: f32 [rows, channels], in place. plans: of rows that follow each other, together those of the batch, at
  // most largest_piece of a sequence each. Products take all rows at once, attention one plan's after the
  // other: the ring has no room for more.
  void forward(const Batch& batch, std::span<const Plan> plans, TensorView x) const;
  // The same for any number of rows of a sequence: in pieces, each with a plan of its own.
  void forward(const Batch& batch, TensorView x) const;

 private:
  struct Layer {
    Tensor attention_norm, ffn_norm;    // f32 [dim]
    ops::PackedMatrix wqkv, wo;         // [3 * heads * head_dim, dim], [dim, heads * head_dim]
    ops::PackedMatrix gate_up, down;    // [intermediate, dim] twice, [dim, intermediate]
    Tensor attention_scale, ffn_scale;  // f32 [dim]
  };
  Layer load_layer(Loader& loader, const std::string& prefix) const;
  // x: f32 [rows, dim]
  void run_layers(const Batch& batch, std::span<const Plan> plans, TensorView x) const;
  void attend(const Batch& batch, std::span<const Plan> plans, int64_t layer, TensorView x) const;
  void feed_forward(const Batch& batch, const Layer& layer, TensorView x) const;

  WindowTransformerShape shape_;
  ops::HeadLayout heads_;
  int ring_;
  std::vector<Layer> layers_;
  ops::PackedMatrix input_, output_;  // [dim, channels] and back, + bias; no outputs when these are equal
  Tensor norm_;                       // f32 [dim]
  std::unique_ptr<RopeTable> rope_;
};

}  // namespace shoal::dac
