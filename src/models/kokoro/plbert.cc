#include "models/kokoro/plbert.h"

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/self_attention.h"

namespace shoal::kokoro {
namespace {

constexpr float kEps = 1e-12f;
constexpr const char* kLayer = "bert.encoder.albert_layer_groups.0.albert_layers.0";

// Words, positions and the one token type in use as one table, of which a row's embedding is the sum of
// three.
Tensor load_embedding(Loader& loader, const Config& config) {
  const std::string prefix = "bert.embeddings.";
  const int64_t width = config.embedding_dim;
  const Tensor words = loader.host_f32(prefix + "word_embeddings.weight", {config.n_token, width});
  const Tensor positions =
      loader.host_f32(prefix + "position_embeddings.weight", {config.max_positions, width});
  const Tensor types = loader.host_f32(prefix + "token_type_embeddings.weight", {2, width});
  const Shape shape = {config.n_token + config.max_positions + 1, width};
  return loader.made(shape, [&] {
    Tensor all(DType::f32, shape);
    float* to = all.as<float>();
    for (const auto& [part, rows] :
         {std::pair(&words, config.n_token), {&positions, config.max_positions}, {&types, int64_t{1}}}) {
      std::memcpy(to, part->as<float>(), static_cast<size_t>(rows * width) * sizeof(float));
      to += rows * width;
    }
    return all;
  });
}

ops::PackedMatrix load_qkv(Loader& loader, int64_t width) {
  const std::string prefix = std::string(kLayer) + ".attention.";
  std::vector<Tensor> weights;
  std::vector<TensorView> views;
  const Tensor bias(DType::f32, {3 * width});
  for (const char* name : {"query", "key", "value"}) {
    const Tensor part = loader.host_f32(prefix + name + ".bias", {width});
    if (!loader.names_only())
      std::memcpy(bias.as<float>() + static_cast<int64_t>(weights.size()) * width, part.as<float>(),
                  static_cast<size_t>(part.bytes()));
    weights.push_back(loader.host_f32(prefix + name + ".weight", {width, width}));
    views.push_back(weights.back());
  }
  return loader.counted(ops::pack_stacked(loader.ctx(), views, bias, loader.dtype()));
}

}  // namespace

PlBert::PlBert(Loader& loader, const Config& config)
    : layers_(config.bert_layers), heads_(config.bert_heads), width_(config.bert_dim) {
  const std::string layer = kLayer;
  embedding_ = load_embedding(loader, config);
  embedding_norm_weight_ = loader.f32("bert.embeddings.LayerNorm.weight", {config.embedding_dim});
  embedding_norm_bias_ = loader.f32("bert.embeddings.LayerNorm.bias", {config.embedding_dim});
  map_ = loader.linear("bert.encoder.embedding_hidden_mapping_in", width_, config.embedding_dim, true);
  qkv_ = load_qkv(loader, width_);
  dense_ = loader.linear(layer + ".attention.dense", width_, width_, true);
  attention_norm_weight_ = loader.f32(layer + ".attention.LayerNorm.weight", {width_});
  attention_norm_bias_ = loader.f32(layer + ".attention.LayerNorm.bias", {width_});
  expand_ = loader.linear(layer + ".ffn", config.bert_intermediate, width_, true);
  contract_ = loader.linear(layer + ".ffn_output", width_, config.bert_intermediate, true);
  output_norm_weight_ = loader.f32(layer + ".full_layer_layer_norm.weight", {width_});
  output_norm_bias_ = loader.f32(layer + ".full_layer_layer_norm.bias", {width_});
  out_ = loader.linear("bert_encoder", config.hidden_dim, width_, true);
}

void PlBert::attend(const Rows& rows, TensorView x) const {
  ops::Context& ctx = *rows.ctx;
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView qkv = rows.alloc(3 * width_);
  const TensorView mixed = ctx.workspace->alloc(ops::product_input(ctx, dense_), {rows.count(), width_});
  ops::linear(ctx, x, qkv_, qkv);
  ops::self_attention(ctx, qkv, heads_, rows.segments, mixed);
  ops::linear(ctx, mixed, dense_, x, {.accumulate = true});
  ops::layer_norm(ctx, x, attention_norm_weight_, attention_norm_bias_, kEps, x);
}

void PlBert::feed_forward(const Rows& rows, TensorView x) const {
  ops::Context& ctx = *rows.ctx;
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView hidden = rows.alloc(expand_.outputs);
  ops::linear(ctx, x, expand_, hidden, {.activation = ops::Activation::gelu_tanh});
  ops::linear(ctx, hidden, contract_, x, {.accumulate = true});
  ops::layer_norm(ctx, x, output_norm_weight_, output_norm_bias_, kEps, x);
}

void PlBert::forward(const Rows& rows, TensorView parts, TensorView y) const {
  ops::Context& ctx = *rows.ctx;
  const Workspace::Scope scope(*ctx.workspace);
  const TensorView embedded = rows.alloc(embedding_.dim(1)), x = rows.alloc(width_);
  ops::gather_sum(ctx, embedding_, parts, embedded);
  ops::layer_norm(ctx, embedded, embedding_norm_weight_, embedding_norm_bias_, kEps, embedded);
  rows.tell("bert_embed", embedded);
  ops::linear(ctx, embedded, map_, x);
  rows.tell("bert_embed_mapped", x);
  for (int64_t layer = 0; layer < layers_; ++layer) {
    attend(rows, x);
    feed_forward(rows, x);
    rows.tell("bert_layer" + std::to_string(layer), x);
  }
  rows.tell("bert_out", x);
  ops::linear(ctx, x, out_, y);
}

}  // namespace shoal::kokoro
