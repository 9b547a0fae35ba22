#include "models/dual_ar/random_model_testing.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "base/bf16.h"
#include "base/error.h"
#include "models/dual_ar/tensor_file_testing.h"

namespace shoal::dual_ar::testing {
namespace {

int64_t between(std::mt19937& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

bool coin(std::mt19937& random) { return between(random, 0, 1) == 1; }

BlockConfig random_block(std::mt19937& random) {
  BlockConfig block;
  block.dim = between(random, 5, 70);
  block.kv_heads = between(random, 1, 3);
  block.heads = block.kv_heads * between(random, 1, 4);
  block.head_dim = 2 * between(random, 1, 17);
  block.hidden = between(random, 3, 90);
  block.norm_eps = coin(random) ? 1e-5f : 1e-6f;
  block.qk_norm = coin(random);
  block.qkv_bias = coin(random);
  block.out_bias = coin(random);
  return block;
}

// mean +- spread, uniform.
NamedWeight random_weight(const Shape& shape, float mean, float spread, std::mt19937& random) {
  NamedWeight weight{shape, std::vector<float>(static_cast<size_t>(shape.elements()))};
  std::uniform_real_distribution<float> distribution(mean - spread, mean + spread);
  for (float& value : weight.values) value = round_to_bf16(distribution(random));
  return weight;
}

NamedWeight random_matrix(int64_t rows, int64_t depth, std::mt19937& random) {
  return random_weight({rows, depth}, 0, std::sqrt(3.0f / static_cast<float>(depth)), random);
}

void add_block(const std::string& prefix, const BlockConfig& block, NamedWeights& weights,
               std::mt19937& random) {
  const std::string attention = prefix + "attention.", ffn = prefix + "feed_forward.";
  weights[attention + "wqkv.weight"] = random_matrix(block.qkv_width(), block.dim, random);
  weights[attention + "wo.weight"] = random_matrix(block.dim, block.attention_width(), random);
  if (block.qkv_bias) weights[attention + "wqkv.bias"] = random_weight({block.qkv_width()}, 0, 0.5f, random);
  if (block.out_bias) weights[attention + "wo.bias"] = random_weight({block.dim}, 0, 0.5f, random);
  if (block.qk_norm)
    for (const char* name : {"q_norm.weight", "k_norm.weight"})
      weights[attention + name] = random_weight({block.head_dim}, 1, 0.5f, random);
  weights[ffn + "w1.weight"] = random_matrix(block.hidden, block.dim, random);
  weights[ffn + "w3.weight"] = random_matrix(block.hidden, block.dim, random);
  weights[ffn + "w2.weight"] = random_matrix(block.dim, block.hidden, random);
  weights[prefix + "attention_norm.weight"] = random_weight({block.dim}, 1, 0.5f, random);
  weights[prefix + "ffn_norm.weight"] = random_weight({block.dim}, 1, 0.5f, random);
}

}  // namespace

Config random_config(std::mt19937& random) {
  Config config;
  config.family = coin(random) ? Family::s1 : Family::s2;
  config.num_codebooks = between(random, 4, kMaxCodebooks);
  config.codebook_size = between(random, 3, 40);
  config.semantic_begin = static_cast<int32_t>(between(random, 20, 60));
  config.semantic_end = config.semantic_begin + static_cast<int32_t>(config.codebook_size) - 1;
  config.im_end = static_cast<int32_t>(between(random, 0, 19));
  config.vocab_size = config.semantic_end + between(random, 1, 9);
  config.max_positions = 128;
  config.slow = random_block(random);
  config.fast = random_block(random);
  if (coin(random)) config.fast.dim = config.slow.dim;
  config.fast.norm_eps = config.slow.norm_eps;
  config.slow_layers = between(random, 1, 3);
  config.fast_layers = between(random, 1, 3);
  config.rope_base = coin(random) ? 1e6 : 1e4;
  config.tied_head = coin(random);
  config.scale_codebook_embeddings = coin(random);
  config.norm_fast_input = coin(random);
  return config;
}

NamedWeights random_weights(const Config& config, std::mt19937& random) {
  NamedWeights weights;
  const int64_t slow = config.slow.dim, fast = config.fast.dim;
  weights["embeddings.weight"] = random_weight({config.vocab_size, slow}, 0, 1, random);
  weights["codebook_embeddings.weight"] =
      random_weight({config.num_codebooks * config.codebook_size, slow}, 0, 1, random);
  for (int64_t i = 0; i < config.slow_layers; ++i)
    add_block(concat("layers.", i, "."), config.slow, weights, random);
  weights["norm.weight"] = random_weight({slow}, 1, 0.5f, random);
  if (!config.tied_head) weights["output.weight"] = random_matrix(config.vocab_size, slow, random);
  if (fast != slow) {
    weights["fast_project_in.weight"] = random_matrix(fast, slow, random);
    weights["fast_project_in.bias"] = random_weight({fast}, 0, 0.5f, random);
  }
  weights["fast_embeddings.weight"] = random_weight({config.codebook_size, fast}, 0, 1, random);
  for (int64_t i = 0; i < config.fast_layers; ++i)
    add_block(concat("fast_layers.", i, "."), config.fast, weights, random);
  weights["fast_norm.weight"] = random_weight({fast}, 1, 0.5f, random);
  weights["fast_output.weight"] = random_matrix(config.codebook_size, fast, random);
  return weights;
}

void split_qkv(const Config& config, NamedWeights& weights) {
  const auto split = [&](const std::string& attention, const BlockConfig& block) {
    for (const std::string kind : {".weight", ".bias"}) {
      auto node = weights.extract(attention + "wqkv" + kind);
      if (node.empty()) continue;
      const NamedWeight& whole = node.mapped();
      const int64_t width = whole.shape.rank() == 2 ? whole.shape[1] : 1;
      auto from = whole.values.begin();
      for (const auto& [name, heads] :
           {std::pair{"wq", block.heads}, {"wk", block.kv_heads}, {"wv", block.kv_heads}}) {
        const int64_t rows = heads * block.head_dim;
        const Shape shape = whole.shape.rank() == 2 ? Shape{rows, width} : Shape{rows};
        weights[attention + name + kind] = {shape, {from, from + rows * width}};
        from += rows * width;
      }
    }
  };
  for (int64_t i = 0; i < config.slow_layers; ++i) split(concat("layers.", i, ".attention."), config.slow);
  for (int64_t i = 0; i < config.fast_layers; ++i)
    split(concat("fast_layers.", i, ".attention."), config.fast);
}

std::vector<int32_t> random_columns(const Config& config, int64_t columns, std::mt19937& random) {
  std::vector<int32_t> ids;
  for (int64_t column = 0; column < columns; ++column) {
    const bool speech = coin(random);
    const int64_t code = between(random, 0, config.codebook_size - 1);
    ids.push_back(static_cast<int32_t>(speech ? config.semantic_begin + code
                                              : between(random, 0, config.vocab_size - 1)));
    for (int64_t k = 0; k < config.num_codebooks; ++k)
      ids.push_back(static_cast<int32_t>(between(random, 0, config.codebook_size - 1)));
  }
  return ids;
}

CheckpointFile::CheckpointFile(const NamedWeights& weights, DType dtype) {
  static int count = 0;
  path_ = std::filesystem::temp_directory_path() /
          concat("dual_ar_test_", ::getpid(), "_", count++, ".safetensors");
  TensorFile file;
  for (const auto& [name, weight] : weights) file.add(name, weight.shape, weight.values, dtype);
  std::ofstream(path_, std::ios::binary) << file.bytes();
}

CheckpointFile::~CheckpointFile() { std::remove(path_.c_str()); }

}  // namespace shoal::dual_ar::testing
