#include "models/dual_ar/reference_testing.h"

#include <algorithm>
#include <cmath>

#include "base/bf16.h"
#include "base/error.h"

namespace shoal::dual_ar::testing {
namespace {

using Row = std::vector<double>;

class Model {
 public:
  Model(const Config& config, const NamedWeights& weights) : config_(config), weights_(weights) {}

  bool has(const std::string& name) const { return weights_.count(name) > 0; }
  const std::vector<float>& values(const std::string& name) const { return weights_.at(name).values; }

  Row table_row(const std::string& name, int64_t row) const {
    const NamedWeight& table = weights_.at(name);
    const auto begin = table.values.begin() + row * table.shape[1];
    return {begin, begin + table.shape[1]};
  }

  // y = W x (+ b)
  Row linear(const std::string& name, const Row& x) const {
    const NamedWeight& weight = weights_.at(name + ".weight");
    Row y(static_cast<size_t>(weight.shape[0]), 0.0);
    for (size_t n = 0; n < y.size(); ++n) {
      for (size_t k = 0; k < x.size(); ++k) y[n] += double{weight.values[n * x.size() + k]} * x[k];
      if (has(name + ".bias")) y[n] += double{values(name + ".bias")[n]};
    }
    return y;
  }

  Row rms_norm(const std::string& name, const Row& x) const {
    double sum = 0;
    for (double value : x) sum += value * value;
    const double scale = 1 / std::sqrt(sum / static_cast<double>(x.size()) + double{config_.slow.norm_eps});
    Row y = x;
    for (size_t i = 0; i < y.size(); ++i) y[i] *= scale * double{values(name)[i]};
    return y;
  }

  // All positions of a sequence at once; x is updated in place.
  void block(const std::string& prefix, const BlockConfig& block, Matrix& x) const {
    Matrix queries, keys, values;
    for (size_t position = 0; position < x.size(); ++position) {
      const Row u = rms_norm(prefix + "attention_norm.weight", x[position]);
      const Row qkv = linear(prefix + "attention.wqkv", u);
      const auto part = [&](int64_t begin, int64_t heads) {
        return Row(qkv.begin() + begin * block.head_dim, qkv.begin() + (begin + heads) * block.head_dim);
      };
      queries.push_back(part(0, block.heads));
      keys.push_back(part(block.heads, block.kv_heads));
      values.push_back(part(block.heads + block.kv_heads, block.kv_heads));
      place_heads(prefix + "attention.q_norm.weight", block, position, queries.back());
      place_heads(prefix + "attention.k_norm.weight", block, position, keys.back());
    }
    for (size_t position = 0; position < x.size(); ++position) {
      add(linear(prefix + "attention.wo", attend(block, position, queries, keys, values)), x[position]);
      const Row u = rms_norm(prefix + "ffn_norm.weight", x[position]);
      Row inner = linear(prefix + "feed_forward.w1", u);
      const Row up = linear(prefix + "feed_forward.w3", u);
      for (size_t i = 0; i < inner.size(); ++i) inner[i] *= up[i] / (1 + std::exp(-inner[i]));
      add(linear(prefix + "feed_forward.w2", inner), x[position]);
    }
  }

 private:
  static void add(const Row& from, Row& to) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  }

  // Head norm when the model has it, then rotation of the pairs (2j, 2j + 1). Angles are f32, cos and sin
  // are rounded to bf16 (MODEL.md 2).
  void place_heads(const std::string& norm, const BlockConfig& block, size_t position, Row& heads) const {
    const auto dim = static_cast<size_t>(block.head_dim);
    for (size_t begin = 0; begin < heads.size(); begin += dim) {
      Row head(heads.begin() + static_cast<std::ptrdiff_t>(begin),
               heads.begin() + static_cast<std::ptrdiff_t>(begin + dim));
      if (block.qk_norm) head = rms_norm(norm, head);
      for (size_t j = 0; j < dim / 2; ++j) {
        const auto exponent = static_cast<float>(2 * j) / static_cast<float>(dim);
        const float theta = 1.0f / static_cast<float>(std::pow(config_.rope_base, double{exponent}));
        const float angle = static_cast<float>(position) * theta;
        const double c = round_to_bf16(static_cast<float>(std::cos(double{angle})));
        const double s = round_to_bf16(static_cast<float>(std::sin(double{angle})));
        const double a = head[2 * j], b = head[2 * j + 1];
        heads[begin + 2 * j] = a * c - b * s;
        heads[begin + 2 * j + 1] = b * c + a * s;
      }
    }
  }

  static Row attend(const BlockConfig& block, size_t position, const Matrix& queries, const Matrix& keys,
                    const Matrix& values) {
    const auto dim = static_cast<size_t>(block.head_dim);
    const auto group = static_cast<size_t>(block.heads / block.kv_heads);
    Row out(static_cast<size_t>(block.heads) * dim, 0.0);
    for (size_t head = 0; head < static_cast<size_t>(block.heads); ++head) {
      const size_t q = head * dim, kv = head / group * dim;
      Row scores(position + 1, 0.0);
      for (size_t past = 0; past <= position; ++past) {
        for (size_t i = 0; i < dim; ++i) scores[past] += queries[position][q + i] * keys[past][kv + i];
        scores[past] /= std::sqrt(static_cast<double>(dim));
      }
      const double highest = *std::max_element(scores.begin(), scores.end());
      double total = 0;
      for (double& score : scores) total += score = std::exp(score - highest);
      for (size_t past = 0; past <= position; ++past)
        for (size_t i = 0; i < dim; ++i) out[q + i] += scores[past] / total * values[past][kv + i];
    }
    return out;
  }

  const Config& config_;
  const NamedWeights& weights_;
};

Row embed(const Config& config, const Model& model, std::span<const int32_t> column) {
  Row x = model.table_row("embeddings.weight", column[0]);
  if (column[0] < config.semantic_begin || column[0] > config.semantic_end) return x;
  for (int64_t k = 0; k < config.num_codebooks; ++k) {
    const Row code = model.table_row("codebook_embeddings.weight",
                                     k * config.codebook_size + column[static_cast<size_t>(k) + 1]);
    for (size_t i = 0; i < x.size(); ++i) x[i] += code[i];
  }
  if (config.scale_codebook_embeddings)
    for (double& value : x) value /= std::sqrt(static_cast<double>(config.num_codebooks + 1));
  return x;
}

Row head(const Config& config, const Model& model, const Row& hidden) {
  return model.linear(config.tied_head ? "embeddings" : "output", model.rms_norm("norm.weight", hidden));
}

}  // namespace

ReferenceSlow reference_slow(const Config& config, const NamedWeights& weights,
                             std::span<const int32_t> columns) {
  const Model model(config, weights);
  ReferenceSlow result;
  const auto width = static_cast<size_t>(config.columns());
  for (size_t at = 0; at < columns.size(); at += width)
    result.embed.push_back(embed(config, model, columns.subspan(at, width)));
  Matrix x = result.embed;
  for (int64_t i = 0; i < config.slow_layers; ++i) {
    model.block(concat("layers.", i, "."), config.slow, x);
    result.layers.push_back(x);
  }
  for (const Row& row : x) result.logits.push_back(head(config, model, row));
  return result;
}

std::vector<double> reference_head(const Config& config, const NamedWeights& weights,
                                   const std::vector<double>& hidden) {
  return head(config, Model(config, weights), hidden);
}

ReferenceFast reference_fast(const Config& config, const NamedWeights& weights,
                             const std::vector<double>& hidden, std::span<const int32_t> codes) {
  const Model model(config, weights);
  ReferenceFast result;
  result.fast_in = config.norm_fast_input ? model.rms_norm("norm.weight", hidden) : hidden;
  if (model.has("fast_project_in.weight")) result.fast_in = model.linear("fast_project_in", result.fast_in);
  Matrix x = {result.fast_in};
  for (size_t k = 0; k + 1 < codes.size(); ++k)
    x.push_back(model.table_row("fast_embeddings.weight", codes[k]));
  for (int64_t i = 0; i < config.fast_layers; ++i) {
    model.block(concat("fast_layers.", i, "."), config.fast, x);
    result.layers.push_back(x);
  }
  for (const Row& row : x)
    result.logits.push_back(model.linear("fast_output", model.rms_norm("fast_norm.weight", row)));
  return result;
}

}  // namespace shoal::dual_ar::testing
