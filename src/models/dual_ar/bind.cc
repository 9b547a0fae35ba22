#include "models/dual_ar/bind.h"

#include <algorithm>
#include <array>

#include "base/bf16.h"
#include "base/f16.h"
#include "ops/transfer.h"
#include "weights/convert.h"

namespace shoal::dual_ar {
namespace {

constexpr int64_t kConvertGrain = int64_t{1} << 16;  // elements a worker rounds at a time

class Binder {
 public:
  Binder(TensorSource& source, ops::Context& ctx, DType dtype) : source_(source), ctx_(ctx), dtype_(dtype) {}

  TensorView stored(const std::string& name, const Shape& shape) { return source_.get(name, shape); }

  // Norm weights: f32 [dim].
  Tensor vector(const std::string& name, int64_t dim) {
    const TensorView view = source_.get(name, {dim});
    return source_.names_only() ? Tensor() : ops::resident(ctx_, weights::to_f32(view, ctx_.team));
  }

  ops::PackedMatrix matrix(const std::string& name, int64_t outputs, int64_t depth, bool has_bias) {
    const TensorView weight = source_.get(name + ".weight", {outputs, depth});
    const TensorView bias = has_bias ? source_.get(name + ".bias", {outputs}) : TensorView();
    return pack(weight, bias);
  }

  ops::PackedMatrix pack(TensorView weight, TensorView bias = {}) {
    return source_.names_only() ? ops::PackedMatrix() : ops::pack_matrix(ctx_, weight, bias, dtype_);
  }

  // Rows for look-ups, in the model's dtype.
  Tensor table(const std::string& name, int64_t entries, int64_t dim) {
    const TensorView view = source_.get(name, {entries, dim});
    if (source_.names_only()) return {};
    if (view.dtype() == dtype_) {
      Tensor same(dtype_, {entries, dim}, ctx_.device);
      copy(view, same);
      return same;
    }
    Tensor wide = weights::to_f32(view, ctx_.team);
    return ops::resident(ctx_, dtype_ == DType::f32 ? std::move(wide) : narrowed(wide));
  }

  BlockWeights block(const std::string& prefix, const BlockConfig& config) {
    const std::string attention = prefix + "attention.", ffn = prefix + "feed_forward.";
    BlockWeights block;
    block.attention_norm = vector(prefix + "attention_norm.weight", config.dim);
    block.qkv = qkv(attention, config);
    if (config.qk_norm) {
      block.q_norm = vector(attention + "q_norm.weight", config.head_dim);
      block.k_norm = vector(attention + "k_norm.weight", config.head_dim);
    }
    block.out = matrix(attention + "wo", config.dim, config.attention_width(), config.out_bias);
    block.ffn_norm = vector(prefix + "ffn_norm.weight", config.dim);
    const TensorView gate = stored(ffn + "w1.weight", {config.hidden, config.dim});
    const TensorView up = stored(ffn + "w3.weight", {config.hidden, config.dim});
    if (!source_.names_only()) block.gate_up = ops::pack_gate_up(ctx_, gate, up, dtype_);
    block.down = matrix(ffn + "w2", config.dim, config.hidden, /*has_bias=*/false);
    source_.release();
    return block;
  }

  // The whole vocabulary, or the semantic rows and then <|im_end|>'s.
  ops::PackedMatrix head(const Config& config, bool semantic) {
    const std::string name = config.tied_head ? "embeddings.weight" : "output.weight";
    const TensorView rows = stored(name, {config.vocab_size, config.slow.dim});
    if (!semantic) return pack(rows);
    const std::array parts = {rows.slice(config.semantic_begin, int64_t{config.semantic_end} + 1),
                              rows.slice(config.im_end, int64_t{config.im_end} + 1)};
    return ops::pack_stacked(ctx_, parts, {}, dtype_);
  }

 private:
  // One matrix, or wq, wk and wv apart (MODEL.md 7).
  ops::PackedMatrix qkv(const std::string& attention, const BlockConfig& config) {
    const int64_t q_rows = config.heads * config.head_dim, kv_rows = config.kv_heads * config.head_dim;
    if (source_.contains(attention + "wqkv.weight") || !source_.contains(attention + "wq.weight"))
      return matrix(attention + "wqkv", config.qkv_width(), config.dim, config.qkv_bias);
    const std::array parts = {stored(attention + "wq.weight", {q_rows, config.dim}),
                              stored(attention + "wk.weight", {kv_rows, config.dim}),
                              stored(attention + "wv.weight", {kv_rows, config.dim})};
    if (!config.qkv_bias) return ops::pack_stacked(ctx_, parts, {}, dtype_);
    const Tensor bias(DType::f32, {config.qkv_width()});
    weights::to_f32(stored(attention + "wq.bias", {q_rows}), part(bias, 0, q_rows));
    weights::to_f32(stored(attention + "wk.bias", {kv_rows}), part(bias, q_rows, kv_rows));
    weights::to_f32(stored(attention + "wv.bias", {kv_rows}), part(bias, q_rows + kv_rows, kv_rows));
    return ops::pack_stacked(ctx_, parts, bias, dtype_);
  }

  // f32 values in the model's dtype.
  Tensor narrowed(TensorView wide) const {
    const auto narrow = dtype_ == DType::bf16 ? float_to_bf16 : float_to_f16;
    Tensor out(dtype_, wide.shape());
    const float* from = wide.as<float>();
    uint16_t* to = out.as<uint16_t>();
    ctx_.team->parallel_for(wide.elements(), kConvertGrain, [&](int64_t begin, int64_t end, int) {
      std::transform(from + begin, from + end, to + begin, narrow);
    });
    return out;
  }

  static std::span<float> part(const Tensor& bias, int64_t begin, int64_t count) {
    return bias.span<float>().subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
  }

  TensorSource& source_;
  ops::Context& ctx_;
  DType dtype_;
};

}  // namespace

Weights bind(TensorSource& source, const Config& config, ops::Context& ctx, const BindOptions& options) {
  Binder binder(source, ctx, options.dtype);
  const BlockConfig &slow = config.slow, &fast = config.fast;
  Weights weights;
  weights.text_embedding = binder.table("embeddings.weight", config.vocab_size, slow.dim);
  weights.codebook_embedding =
      binder.table("codebook_embeddings.weight", config.num_codebooks * config.codebook_size, slow.dim);
  for (int64_t i = 0; i < config.slow_layers; ++i)
    weights.slow_layers.push_back(binder.block(concat("layers.", i, "."), slow));
  weights.norm = binder.vector("norm.weight", slow.dim);
  weights.semantic_head = options.semantic_head;
  weights.head = binder.head(config, options.semantic_head);
  source.release();

  if (fast.dim != slow.dim)
    weights.fast_in = binder.matrix("fast_project_in", fast.dim, slow.dim, /*has_bias=*/true);
  weights.fast_embedding = binder.table("fast_embeddings.weight", config.codebook_size, fast.dim);
  for (int64_t i = 0; i < config.fast_layers; ++i)
    weights.fast_layers.push_back(binder.block(concat("fast_layers.", i, "."), fast));
  weights.fast_norm = binder.vector("fast_norm.weight", fast.dim);
  const TensorView fast_output = binder.stored("fast_output.weight", {config.codebook_size, fast.dim});
  weights.fast_head = binder.pack(fast_output.slice(0, config.residual_codes()));
  source.release();

  weights.slow_rope =
      ops::resident(ctx, ops::make_rope_table(config.max_positions, slow.head_dim, config.rope_base));
  weights.fast_rope =
      ops::resident(ctx, ops::make_rope_table(config.num_codebooks, fast.head_dim, config.rope_base));
  return weights;
}

}  // namespace shoal::dual_ar
