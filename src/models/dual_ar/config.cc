#include "models/dual_ar/config.h"

#include <cmath>
#include <optional>

#include "base/error.h"
#include "ops/sample.h"

namespace shoal::dual_ar {
namespace {

// Bounds far beyond every published checkpoint, and small enough that no product of them overflows.
constexpr int64_t kMaxDim = 1 << 16, kMaxHeads = 1 << 10, kMaxHeadDim = 1 << 10, kMaxHidden = 1 << 20;
constexpr int64_t kMaxVocab = ops::kMostVocabulary, kMaxCodebookSize = 1 << 16, kMaxPositions = 1 << 20;
constexpr int64_t kMaxLayers = 512;

// The members of one object; a null counts as absent.
class Keys {
 public:
  explicit Keys(const Json& object, std::string prefix = "") : object_(object), prefix_(std::move(prefix)) {
    object.as_object();
  }

  bool has_null(const std::string& key) const {
    const Json* value = object_.find(prefix_ + key);
    return value != nullptr && value->is_null();
  }

  int64_t integer(const std::string& key, int64_t low, int64_t high,
                  std::optional<int64_t> fallback = {}) const {
    const Json* value = find(key, fallback.has_value());
    const int64_t number = value ? value->as_integer() : *fallback;
    if (number < low || number > high)
      fail(ErrorCode::invalid_argument, where(key), " must be in ", low, "..", high, ", got ", number);
    return number;
  }

  double number(const std::string& key, double low, double high, double fallback) const {
    const Json* value = find(key, true);
    const double number = value ? value->as_number() : fallback;
    if (!(number >= low && number <= high))
      fail(ErrorCode::invalid_argument, where(key), " must be in ", low, "..", high, ", got ", number);
    return number;
  }

  bool flag(const std::string& key, bool fallback) const {
    const Json* value = find(key, true);
    return value ? value->as_bool() : fallback;
  }

  // For messages: "config.json: text_config.dim".
  std::string where(const std::string& key) const {
    const std::string& parent = object_.where();
    return concat(parent, parent.ends_with(':') ? " " : ".", prefix_, key);
  }

 private:
  const Json* find(const std::string& key, bool optional) const {
    const Json* value = optional ? object_.find(prefix_ + key) : &object_.at(prefix_ + key);
    return value && value->is_null() && optional ? nullptr : value;
  }

  const Json& object_;
  std::string prefix_;
};

// The value of an absent or null key (the defaults of fish-speech's ModelArgs).
struct BlockDefaults {
  std::optional<int64_t> dim = {}, heads = {}, kv_heads = {}, head_dim = {}, hidden = {};
  bool qk_norm = false, qkv_bias = false, out_bias = false;
};

BlockDefaults as_defaults(const BlockConfig& block) {
  return {block.dim,    block.heads,   block.kv_heads, block.head_dim,
          block.hidden, block.qk_norm, block.qkv_bias, block.out_bias};
}

int64_t default_hidden(int64_t dim) { return (8 * dim / 3 + 255) / 256 * 256; }

BlockConfig read_block(const Keys& keys, const BlockDefaults& defaults, float norm_eps) {
  BlockConfig block;
  block.dim = keys.integer("dim", 1, kMaxDim, defaults.dim);
  block.heads = keys.integer("n_head", 1, kMaxHeads, defaults.heads);
  block.kv_heads = keys.integer("n_local_heads", -1, kMaxHeads, defaults.kv_heads.value_or(block.heads));
  if (block.kv_heads == -1) block.kv_heads = block.heads;
  if (block.kv_heads < 1 || block.heads % block.kv_heads != 0)
    fail(ErrorCode::invalid_argument, keys.where("n_local_heads"), " must divide n_head = ", block.heads,
         ", got ", block.kv_heads);

  const bool derived = keys.has_null("head_dim") && !defaults.head_dim;
  const int64_t head_dim = derived ? block.dim / block.heads : defaults.head_dim.value_or(64);
  block.head_dim = keys.integer("head_dim", 2, kMaxHeadDim, head_dim);
  if (block.head_dim % 2 != 0)
    fail(ErrorCode::invalid_argument, keys.where("head_dim"), " must be even, got ", block.head_dim);

  block.hidden =
      keys.integer("intermediate_size", 1, kMaxHidden, defaults.hidden.value_or(default_hidden(block.dim)));
  block.qk_norm = keys.flag("attention_qk_norm", defaults.qk_norm);
  block.qkv_bias = keys.flag("attention_qkv_bias", defaults.qkv_bias);
  block.out_bias = keys.flag("attention_o_bias", defaults.out_bias);
  block.norm_eps = norm_eps;
  return block;
}

// What both forms keep under the same names; in the nested one, text_config holds it.
Config read_slow(const Keys& keys) {
  Config config;
  config.vocab_size = keys.integer("vocab_size", 1, kMaxVocab);
  config.max_positions = keys.integer("max_seq_len", 2, kMaxPositions, 2048);
  config.slow_layers = keys.integer("n_layer", 1, kMaxLayers);
  config.rope_base = keys.number("rope_base", 1, 1e12, 10000);
  config.tied_head = keys.flag("tie_word_embeddings", true);
  const auto norm_eps = static_cast<float>(keys.number("norm_eps", 1e-12, 1, 1e-5));
  config.slow = read_block(keys, {.dim = 4096}, norm_eps);
  return config;
}

Config read_flat(const Json& root) {
  const Keys keys(root);
  Config config = read_slow(keys);
  config.family = Family::s1;
  config.num_codebooks = keys.integer("num_codebooks", 1, kMaxCodebooks);
  config.codebook_size = keys.integer("codebook_size", 1, kMaxCodebookSize);
  config.fast_layers = keys.integer("n_fast_layer", 1, kMaxLayers, 4);
  config.fast = read_block(Keys(root, "fast_"), as_defaults(config.slow), config.slow.norm_eps);
  config.scale_codebook_embeddings = keys.flag("scale_codebook_embeddings", false);
  config.norm_fast_input = keys.flag("norm_fastlayer_input", false);
  return config;
}

Config read_nested(const Json& root) {
  const Keys keys(root), audio(root.at("audio_decoder_config"));
  Config config = read_slow(Keys(root.at("text_config")));
  config.family = Family::s2;
  config.num_codebooks = audio.integer("num_codebooks", 1, kMaxCodebooks);
  config.codebook_size = audio.integer("vocab_size", 1, kMaxCodebookSize);
  config.fast_layers = audio.integer("n_layer", 1, kMaxLayers, 4);
  // norm_eps and rope_base of the audio part are not read by the reference.
  config.fast = read_block(audio, as_defaults(config.slow), config.slow.norm_eps);
  config.scale_codebook_embeddings = true;
  config.norm_fast_input = true;
  config.semantic_begin = static_cast<int32_t>(keys.integer("semantic_start_token_id", -1, kMaxVocab, -1));
  config.semantic_end = static_cast<int32_t>(keys.integer("semantic_end_token_id", -1, kMaxVocab, -1));
  config.im_end = static_cast<int32_t>(keys.integer("eos_token_id", -1, kMaxVocab, -1));
  return config;
}

}  // namespace

Config Config::read(const std::string& config_json_path) {
  return parse(Json::read_file(config_json_path, kMaxConfigBytes));
}

Config Config::parse(const Json& root) {
  const Json& type = root.at("model_type");
  if (type.as_string() == "dual_ar") return read_flat(root);
  if (type.as_string() == "fish_qwen3_omni") return read_nested(root);
  fail(ErrorCode::unsupported, type.where(), " must be \"dual_ar\" or \"fish_qwen3_omni\", got \"",
       type.as_string(), "\"");
}

Config Config::s1_mini() {
  Config config;
  config.vocab_size = 155776;
  config.num_codebooks = 10;
  config.codebook_size = 4096;
  config.max_positions = 8192;
  config.slow = {.dim = 1024,
                 .heads = 16,
                 .kv_heads = 8,
                 .head_dim = 128,
                 .hidden = 3072,
                 .norm_eps = 1e-6f,
                 .qk_norm = true};
  config.fast = config.slow;
  config.fast.head_dim = 64;
  config.fast.qk_norm = false;
  config.slow_layers = 28;
  config.fast_layers = 4;
  config.rope_base = 1e6;
  config.scale_codebook_embeddings = true;
  config.semantic_begin = 151658;
  config.semantic_end = 155753;
  config.im_end = 151647;
  return config;
}

Config Config::s2_pro() {
  Config config = s1_mini();
  config.family = Family::s2;
  config.max_positions = 32768;
  config.slow.dim = config.fast.dim = 2560;
  config.slow.heads = config.fast.heads = 32;
  config.slow.hidden = config.fast.hidden = 9728;
  config.fast.head_dim = 128;
  config.slow_layers = 36;
  config.tied_head = true;
  config.norm_fast_input = true;
  config.semantic_begin = 151678;
  config.semantic_end = 155773;
  config.im_end = 151645;
  return config;
}

void check_token_ids(const Config& config) {
  const auto inside = [&](const char* name, int32_t id) {
    if (id < 0 || id >= config.vocab_size)
      fail(ErrorCode::invalid_argument, name, " must be in 0..", config.vocab_size - 1, ", got ", id);
  };
  inside("semantic_begin", config.semantic_begin);
  inside("semantic_end", config.semantic_end);
  inside("im_end", config.im_end);
  if (config.semantic_begin > config.semantic_end)
    fail(ErrorCode::invalid_argument,
         "semantic_end must be at least semantic_begin = ", config.semantic_begin, ", got ",
         config.semantic_end);
  if (config.im_end >= config.semantic_begin && config.im_end <= config.semantic_end)
    fail(ErrorCode::invalid_argument, "im_end must lie outside the semantic range ", config.semantic_begin,
         "..", config.semantic_end, ", got ", config.im_end);
}

}  // namespace shoal::dual_ar
