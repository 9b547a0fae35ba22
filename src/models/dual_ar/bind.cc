#include "models/dual_ar/bind.h"

#include <algorithm>
#include <array>

#include "base/bf16.h"
#include "base/f16.h"
#include "ops/device_state.h"
#include "ops/transfer.h"
#include "weights/convert.h"

namespace shoal::dual_ar {
namespace {

using weights::Weight;

constexpr int64_t kConvertGrain = int64_t{1} << 16;  // elements a worker rounds at a time

class Binder {
 public:
  Binder(weights::TensorSource& source, ops::Context& ctx, const Formats& formats)
      : source_(source),
        ctx_(ctx),
        layers_(ops::layer_format(ctx.device, formats)),
        plain_(formats.operands),
        narrow_text_(is_quantised(formats.weights) && !ops::computes_by_itself(ctx.device)) {}

  Weight stored(const std::string& name, const Shape& shape) { return source_.tensor(name, shape); }

  // Norm weights: f32 [dim].
  Tensor vector(const std::string& name, int64_t dim) {
    return ops::resident(ctx_, weights::to_f32(stored(name, {dim}), ctx_.team));
  }

  // Of a layer.
  Weight of_layer(const std::string& name, const Shape& shape) { return source_.layer_matrix(name, shape); }
  ops::PackedMatrix matrix(const std::string& name, int64_t outputs, int64_t depth, bool has_bias) {
    return pack(of_layer(name + ".weight", {outputs, depth}), name, has_bias, layers_);
  }
  // Between the transformers.
  ops::PackedMatrix projection(const std::string& name, int64_t outputs, int64_t depth) {
    return pack(stored(name + ".weight", {outputs, depth}), name, /*has_bias=*/true, plain_);
  }
  // Of a head.
  ops::PackedMatrix pack_rows(TensorView weight) { return ops::pack_matrix(ctx_, weight, {}, plain_); }

  // Rows for look-ups, in the operands' dtype.
  Tensor table(const std::string& name, int64_t entries, int64_t dim) {
    Weight weight = stored(name, {entries, dim});
    const TensorView view = weight.view;
    if (view.is_sized_only()) return Tensor::sized(plain_, view.shape(), ctx_.device);
    if (view.dtype() == plain_) {
      Tensor same(plain_, {entries, dim}, ctx_.device);
      copy(view, same);
      return same;
    }
    Tensor wide = weights::to_f32(std::move(weight), ctx_.team);
    return ops::resident(ctx_, plain_ == DType::f32 ? std::move(wide) : narrowed(wide));
  }

  Tensor rope(int64_t positions, int64_t head_dim, double base) {
    if (source_.names_only()) return Tensor::sized(DType::f32, {positions, head_dim / 2, 2}, ctx_.device);
    return ops::resident(ctx_, ops::make_rope_table(positions, head_dim, base));
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
    const Weight gate = of_layer(ffn + "w1.weight", {config.hidden, config.dim});
    const Weight up = of_layer(ffn + "w3.weight", {config.hidden, config.dim});
    block.gate_up = ops::pack_gate_up(ctx_, as_stored(gate), as_stored(up), layers_);
    block.down = matrix(ffn + "w2", config.dim, config.hidden, /*has_bias=*/false);
    return block;
  }

  Head head(const Config& config, bool semantic) {
    const std::string name = config.tied_head ? "embeddings.weight" : "output.weight";
    const Weight weight = stored(name, {config.vocab_size, config.slow.dim});
    const TensorView rows = weight.view;
    Head head{.semantic = semantic};
    if (semantic) {
      const std::array parts = {rows.slice(config.semantic_begin, int64_t{config.semantic_end} + 1),
                                rows.slice(config.im_end, int64_t{config.im_end} + 1)};
      head.speech = ops::pack_stacked(ctx_, parts, {}, plain_);
      return head;
    }
    const int64_t vocab = config.vocab_size;
    const int64_t begin = narrow_text_ ? std::min(config.semantic_begin, config.im_end) : 0;
    const int64_t end = narrow_text_ ? std::max(config.semantic_end, config.im_end) + int64_t{1} : vocab;
    if (begin > 0) head.text_before = ops::pack_matrix(ctx_, rows.slice(0, begin), {}, layers_);
    head.speech = pack_rows(rows.slice(begin, end));
    if (end < vocab) head.text_after = ops::pack_matrix(ctx_, rows.slice(end, vocab), {}, layers_);
    return head;
  }

 private:
  static ops::StoredMatrix as_stored(const Weight& weight) {
    if (weight.view.dtype() != DType::u8) return {weight.view, weight.scales};
    return {weight.view, weight.scales, weight.minima, 2 * weight.view.dim(1)};
  }

  ops::PackedMatrix pack(const Weight& weight, const std::string& name, bool has_bias, MatrixFormat format) {
    const Weight bias = has_bias ? stored(name + ".bias", {weight.view.dim(0)}) : Weight();
    return ops::pack_matrix(ctx_, as_stored(weight), bias.view, format);
  }

  // One matrix, or wq, wk and wv apart (MODEL.md 7).
  ops::PackedMatrix qkv(const std::string& attention, const BlockConfig& config) {
    const int64_t q_rows = config.heads * config.head_dim, kv_rows = config.kv_heads * config.head_dim;
    if (source_.contains(attention + "wqkv.weight") || !source_.contains(attention + "wq.weight"))
      return matrix(attention + "wqkv", config.qkv_width(), config.dim, config.qkv_bias);
    const Weight q = of_layer(attention + "wq.weight", {q_rows, config.dim}),
                 k = of_layer(attention + "wk.weight", {kv_rows, config.dim}),
                 v = of_layer(attention + "wv.weight", {kv_rows, config.dim});
    const std::array parts = {as_stored(q), as_stored(k), as_stored(v)};
    if (!config.qkv_bias) return ops::pack_stacked(ctx_, parts, {}, layers_);
    const Tensor bias(DType::f32, {config.qkv_width()});
    weights::to_f32(stored(attention + "wq.bias", {q_rows}).view, part(bias, 0, q_rows));
    weights::to_f32(stored(attention + "wk.bias", {kv_rows}).view, part(bias, q_rows, kv_rows));
    weights::to_f32(stored(attention + "wv.bias", {kv_rows}).view, part(bias, q_rows + kv_rows, kv_rows));
    return ops::pack_stacked(ctx_, parts, bias, layers_);
  }

  // f32 values in the operands' dtype.
  Tensor narrowed(TensorView wide) const {
    const auto narrow = plain_ == DType::bf16 ? float_to_bf16 : float_to_f16;
    Tensor out(plain_, wide.shape());
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

  weights::TensorSource& source_;
  ops::Context& ctx_;
  MatrixFormat layers_;
  DType plain_;
  bool narrow_text_;
};

}  // namespace

Weights bind(weights::TensorSource& source, const Config& config, ops::Context& ctx,
             const BindOptions& options) {
  Binder binder(source, ctx, options.formats);
  const BlockConfig &slow = config.slow, &fast = config.fast;
  Weights weights;
  weights.text_embedding = binder.table("embeddings.weight", config.vocab_size, slow.dim);
  weights.codebook_embedding =
      binder.table("codebook_embeddings.weight", config.num_codebooks * config.codebook_size, slow.dim);
  for (int64_t i = 0; i < config.slow_layers; ++i)
    weights.slow_layers.push_back(binder.block(concat("layers.", i, "."), slow));
  weights.norm = binder.vector("norm.weight", slow.dim);
  weights.head = binder.head(config, options.semantic_head);

  if (fast.dim != slow.dim) weights.fast_in = binder.projection("fast_project_in", fast.dim, slow.dim);
  weights.fast_embedding = binder.table("fast_embeddings.weight", config.codebook_size, fast.dim);
  for (int64_t i = 0; i < config.fast_layers; ++i)
    weights.fast_layers.push_back(binder.block(concat("fast_layers.", i, "."), fast));
  weights.fast_norm = binder.vector("fast_norm.weight", fast.dim);
  const Weight fast_output = binder.stored("fast_output.weight", {config.codebook_size, fast.dim});
  weights.fast_head = binder.pack_rows(fast_output.view.slice(0, config.residual_codes()));
  weights.slow_rope = binder.rope(config.max_positions, slow.head_dim, config.rope_base);
  weights.fast_rope = binder.rope(config.num_codebooks, fast.head_dim, config.rope_base);
  return weights;
}

}  // namespace shoal::dual_ar
