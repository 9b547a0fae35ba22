#include "models/dac/window_transformer.h"

#include <algorithm>

#include "models/dac/config.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/transfer.h"

namespace shoal::dac {
namespace {

constexpr int64_t kFewestRopeRows = 1024;

}  // namespace

RopeTable::RopeTable(int64_t first_rows, int64_t head_dim, double base) : head_dim_(head_dim), base_(base) {
  int64_t rows = std::clamp(first_rows, kFewestRopeRows, kMaxPositions);
  for (Level& level : levels_) {
    level.rows = rows;
    rows = std::min(2 * rows, kMaxPositions);
  }
}

TensorView RopeTable::covering(ops::Context& ctx, int64_t positions) const {
  for (Level& level : levels_) {
    if (level.rows < positions) continue;
    if (ops::is_planning(ctx))
      return TensorView(nullptr, DType::f32, {level.rows, head_dim_ / 2, 2}, ctx.device);
    std::call_once(level.made, [&] {
      level.table = ops::resident(ctx, ops::make_rope_table(level.rows, head_dim_, base_));
    });
    return level.table;
  }
  fail(ErrorCode::too_large, "codec: a clip needs ", positions, " positions, the most is ", kMaxPositions);
}

WindowTransformer::WindowTransformer(Loader& loader, const std::string& prefix,
                                     const WindowTransformerShape& shape)
    : shape_(shape),
      heads_{shape.heads, shape.heads, shape.head_dim},
      ring_(loader.layout().add_ring(shape.layers, shape.heads, shape.head_dim, shape.window,
                                     shape.largest_piece)) {
  if (shape.channels != shape.dim) {
    input_ = loader.linear(prefix + ".input_proj", shape.dim, shape.channels, /*bias=*/true);
    output_ = loader.linear(prefix + ".output_proj", shape.channels, shape.dim, /*bias=*/true);
  }
  for (int64_t i = 0; i < shape.layers; ++i)
    layers_.push_back(load_layer(loader, concat(prefix, ".layers.", i)));
  norm_ = loader.f32(prefix + ".norm.weight", {shape.dim});
  rope_ = std::make_unique<RopeTable>(shape.block_size, shape.head_dim, shape.rope_base);
  if (!loader.names_only()) rope_->covering(loader.ctx(), 1);
}

WindowTransformer::Layer WindowTransformer::load_layer(Loader& loader, const std::string& prefix) const {
  const int64_t dim = shape_.dim, width = shape_.heads * shape_.head_dim, hidden = shape_.intermediate;
  Layer layer;
  layer.attention_norm = loader.f32(prefix + ".attention_norm.weight", {dim});
  layer.wqkv = loader.linear(prefix + ".attention.wqkv", 3 * width, dim, /*bias=*/false);
  layer.wo = loader.linear(prefix + ".attention.wo", dim, width, /*bias=*/false);
  layer.attention_scale = loader.f32(prefix + ".attention_layer_scale.gamma", {dim});
  layer.ffn_norm = loader.f32(prefix + ".ffn_norm.weight", {dim});
  layer.gate_up = loader.gate_up(prefix + ".feed_forward.w1", prefix + ".feed_forward.w3", hidden, dim);
  layer.down = loader.linear(prefix + ".feed_forward.w2", dim, hidden, /*bias=*/false);
  layer.ffn_scale = loader.f32(prefix + ".ffn_layer_scale.gamma", {dim});
  return layer;
}

TensorView WindowTransformer::rope_for(const Batch& batch) const {
  int64_t longest = 1;
  for (int s = 0; s < batch.sequences(); ++s)
    longest = std::max(longest, batch.starts[static_cast<size_t>(s)] + batch.rows.count(s));
  return rope_->covering(*batch.ctx, longest);
}

void WindowTransformer::write_plan(const Batch& batch, std::span<int32_t> positions,
                                   std::span<int32_t> page_table) const {
  const int64_t ring = batch.state->ring(ring_).pages;
  const int64_t pages = static_cast<int64_t>(page_table.size()) / std::max(1, batch.sequences());
  for (int s = 0; s < batch.sequences(); ++s) {
    const int64_t start = batch.starts[static_cast<size_t>(s)], count = batch.rows.count(s);
    CHECK(count <= shape_.largest_piece, count, " rows of one sequence, the ring is made for ",
          shape_.largest_piece);
    for (int64_t i = 0; i < count; ++i)
      positions[static_cast<size_t>(batch.rows.begin(s) + i)] = static_cast<int32_t>(start + i);
    // Only the pages of the window are ever looked up: the others are gone, or not there yet.
    const int64_t slot_begin = batch.slots[static_cast<size_t>(s)] * ring;
    const auto table = page_table.subspan(static_cast<size_t>(s * pages), static_cast<size_t>(pages));
    std::fill(table.begin(), table.end(), static_cast<int32_t>(slot_begin));
    const int64_t oldest = std::max<int64_t>(0, start - shape_.window + 1) / kPageSize;
    for (int64_t page = oldest; page < (start + count + kPageSize - 1) / kPageSize; ++page)
      table[static_cast<size_t>(page)] = static_cast<int32_t>(slot_begin + page % ring);
  }
}

WindowTransformer::Plan WindowTransformer::plan(const Batch& batch) const {
  const TensorView rope = rope_for(batch);
  const int64_t pages = table_pages(rope.dim(0));
  const auto positions = host_array<int32_t>(*batch.ctx, batch.rows.rows());
  const auto page_table = host_array<int32_t>(*batch.ctx, batch.sequences() * pages);
  write_plan(batch, positions, page_table);
  return {ops::on_device(*batch.ctx, {batch.rows, positions, page_table, pages, kPageSize}), rope};
}

void WindowTransformer::forward(const Batch& batch, std::span<const Plan> plans, TensorView x) const {
  ops::Context& ctx = *batch.ctx;
  if (shape_.channels == shape_.dim) {
    run_layers(batch, plans, x);
    return ops::rms_norm(ctx, x, norm_, shape_.eps, x);
  }
  const Workspace::Scope scope(batch.workspace());
  const TensorView inner = batch.alloc(shape_.dim);
  ops::linear(ctx, x, input_, inner);
  run_layers(batch, plans, inner);
  ops::norm_linear(ctx, inner, {norm_, shape_.eps}, output_, x);
}

void WindowTransformer::forward(const Batch& batch, TensorView x) const {
  for_each_piece_until(
      batch, [&](int64_t begin) { return batch.end_of_piece(begin, shape_.largest_piece); },
      [&](const Batch& piece, int64_t begin, int64_t end) {
        const Batch placed = piece.with_tables();
        const Plan whole = plan(placed);
        forward(placed, {&whole, 1}, x.slice(begin, end));
      });
}

void WindowTransformer::run_layers(const Batch& batch, std::span<const Plan> plans, TensorView x) const {
  for (int64_t i = 0; i < shape_.layers; ++i) {
    attend(batch, plans, i, x);
    feed_forward(batch, layers_[static_cast<size_t>(i)], x);
  }
}

// x += gamma * Wo attention(rms_norm(x))
void WindowTransformer::attend(const Batch& batch, std::span<const Plan> plans, int64_t index,
                               TensorView x) const {
  const Workspace::Scope scope(batch.workspace());
  ops::Context& ctx = *batch.ctx;
  const Layer& layer = layers_[static_cast<size_t>(index)];
  const TensorView qkv = batch.alloc(heads_.qkv_width());
  ops::norm_linear(ctx, x, {layer.attention_norm, shape_.eps}, layer.wqkv, qkv);
  const TensorView heads = batch.alloc_input(layer.wo);
  const ops::KvLayer cache = batch.state->kv(ring_, index);
  int64_t begin = 0;
  for (const Plan& plan :
       plans) {  // one that another follows has several rows of a sequence (ops/attention.h)
    const int64_t end = begin + plan.batch.rows.rows();
    ops::attend(ctx, qkv.slice(begin, end), {heads_, plan.rope, shape_.window}, {}, plan.batch, cache,
                heads.slice(begin, end));
    begin = end;
  }
  ops::linear(ctx, heads, layer.wo, x, {.accumulate = true, .scale = layer.attention_scale});
}

// x += gamma * W2 (silu(W1 u) * (W3 u)), u = rms_norm(x)
void WindowTransformer::feed_forward(const Batch& batch, const Layer& layer, TensorView x) const {
  const Workspace::Scope scope(batch.workspace());
  ops::Context& ctx = *batch.ctx;
  const TensorView hidden = batch.alloc_input(layer.down);
  ops::norm_swiglu(ctx, x, {layer.ffn_norm, shape_.eps}, layer.gate_up, hidden);
  ops::linear(ctx, hidden, layer.down, x, {.accumulate = true, .scale = layer.ffn_scale});
}

}  // namespace shoal::dac
