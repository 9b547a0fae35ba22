// Sizes and switches of a DualAR checkpoint: config.json in its flat and its nested form.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/json.h"

namespace shoal::dual_ar {

inline constexpr int64_t kMaxCodebooks = 16;

// Sizes of one transformer block; the slow and the fast transformer have one each.
struct BlockConfig {
  int64_t dim = 0;
  int64_t heads = 0;     // query heads, a multiple of kv_heads
  int64_t kv_heads = 0;  // key and value heads
  int64_t head_dim = 0;  // even; heads * head_dim need not equal dim
  int64_t hidden = 0;    // feed-forward width
  float norm_eps = 1e-5f;
  bool qk_norm = false, qkv_bias = false, out_bias = false;

  int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
  int64_t attention_width() const { return heads * head_dim; }
};

// Which reference code a checkpoint belongs to: the rules of sampling differ (MODEL.md 5).
enum class Family : uint8_t { s1, s2 };

struct Config {
  Family family = Family::s1;
  int64_t vocab_size = 0;
  int64_t num_codebooks = 0;  // 1 semantic + residual ones; at most kMaxCodebooks
  int64_t codebook_size = 0;
  int64_t max_positions = 0;  // prompt and generated columns together
  BlockConfig slow, fast;
  int64_t slow_layers = 0, fast_layers = 0;
  double rope_base = 10000;
  bool tied_head = false;                  // the head is the text embedding
  bool scale_codebook_embeddings = false;  // divide columns that carry codes by sqrt(num_codebooks + 1)
  bool norm_fast_input = false;            // the fast transformer reads the hidden state after the final norm

  // Token ids, known from the tokenizer: set by the caller before a model is made. semantic_end is inclusive:
  // code c of codebook 0 is token semantic_begin + c.
  int32_t semantic_begin = -1, semantic_end = -1, im_end = -1;

  int64_t columns() const { return 1 + num_codebooks; }  // ids per position: the token, then the codes
  // Codes that a residual codebook can have: the first 1024 logits (MODEL.md 4).
  int64_t residual_codes() const { return std::min<int64_t>(codebook_size, 1024); }

  // "model_type" chooses the form: "dual_ar" is flat, "fish_qwen3_omni" nested. Unknown keys are ignored. The
  // nested form also gives the semantic range and, as eos_token_id, im_end; the tokenizer's values take
  // precedence. Throws Error: not_found, io, corrupt_file; unsupported (another model_type); invalid_argument
  // naming the key, its range and the value found.
  static Config read(const std::string& config_json_path);
  static Config parse(const Json& root);

  // The published sizes of S1-mini and S2-Pro with their token ids ; for benchmarks.
  static Config s1_mini();
  static Config s2_pro();
};

// The ids set by the caller, checked against the vocabulary. Throws Error(invalid_argument).
void check_token_ids(const Config& config);

}  // namespace shoal::dual_ar
