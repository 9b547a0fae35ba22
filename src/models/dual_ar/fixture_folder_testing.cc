#include "models/dual_ar/fixture_folder_testing.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "base/json.h"
#include "models/dual_ar/reference_testing.h"

namespace shoal::dual_ar::testing {
namespace {

constexpr int64_t kFrames = 6;  // of a stream, fewer than the window of penalties has
constexpr const char* kTokenizer = SHOAL_SOURCE_DIR "/tests/data/fish/set_a/";

std::string config_json(int64_t fast_dim) {
  return concat(R"({"model_type": "dual_ar", "vocab_size": 576, "dim": 96, "n_layer": 2, "n_head": 4,
    "n_local_heads": 2, "head_dim": 16, "intermediate_size": 80, "norm_eps": 1e-6, "rope_base": 1000000,
    "max_seq_len": 512, "tie_word_embeddings": false, "attention_qk_norm": true, "codebook_size": 32,
    "scale_codebook_embeddings": true, "num_codebooks": 5, "n_fast_layer": 2, "fast_n_head": 4,
    "fast_n_local_heads": 2, "fast_head_dim": 8, "fast_intermediate_size": 72,
    "fast_attention_qk_norm": false, "fast_dim": )",
                fast_dim, "}");
}

// The ids of set_a's tokenizer (special_tokens.json).
Config config_of(const std::string& json) {
  Config config = Config::parse(Json::parse(json, "config.json"));
  config.semantic_begin = 527;
  config.semantic_end = 558;
  config.im_end = 516;
  return config;
}

std::vector<float> flat(const Matrix& rows) {
  std::vector<float> values;
  for (const auto& row : rows)
    for (const double value : row) values.push_back(static_cast<float>(value));
  return values;
}

std::vector<float> flat(const std::vector<double>& row) { return flat(Matrix{row}); }

// [columns, height] -> [height, columns]
std::vector<int32_t> turned(std::span<const int32_t> columns, int64_t height) {
  const int64_t count = std::ssize(columns) / height;
  std::vector<int32_t> values;
  for (int64_t row = 0; row < height; ++row)
    for (int64_t column = 0; column < count; ++column)
      values.push_back(columns[static_cast<size_t>(column * height + row)]);
  return values;
}

// The largest of the first `count` logits, each id of `penalised` made less likely once.
int32_t greedy(std::vector<double> logits, int64_t count, const std::set<int32_t>& penalised,
               double penalty) {
  for (const int32_t id : penalised) {
    double& logit = logits[static_cast<size_t>(id)];
    logit = logit < 0 ? logit * penalty : logit / penalty;
  }
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.begin() + count) - logits.begin());
}

}  // namespace

FixtureFolder::FixtureFolder(int64_t fast_dim, unsigned seed)
    : config_json_(config_json(fast_dim)),
      config_(config_of(config_json_)),
      random_(seed),
      weights_(random_weights(config_, random_)) {
  add_case();
  add_long_prompt();
}

void FixtureFolder::add_case() {
  const int64_t height = config_.columns(), columns = 11, books = config_.num_codebooks;
  const std::vector<int32_t> prompt = random_columns(config_, columns, random_);
  const std::vector<int32_t> frame = random_columns(config_, 1, random_);
  const std::span<const int32_t> codes = std::span(frame).subspan(1);
  goldens_.add("lm.plain.prompt", {height, columns}, turned(prompt, height));
  goldens_.add("lm.plain.tf_codes", {books}, codes);
  const ReferenceSlow slow = reference_slow(config_, weights_, prompt);
  goldens_.add("lm.plain.embed", {columns, config_.slow.dim}, flat(slow.embed));
  for (size_t i = 0; i < slow.layers.size(); ++i)
    goldens_.add(concat("lm.plain.layer", i), {columns, config_.slow.dim}, flat(slow.layers[i]));
  goldens_.add("lm.plain.slow_logits_all", {columns, config_.vocab_size}, flat(slow.logits));
  const ReferenceFast fast = reference_fast(config_, weights_, slow.layers.back().back(), codes);
  goldens_.add("lm.plain.fast_in", {config_.fast.dim}, flat(fast.fast_in));
  for (size_t i = 0; i < fast.layers.size(); ++i)
    goldens_.add(concat("lm.plain.fast_layer", i, "_tf"), {books, config_.fast.dim}, flat(fast.layers[i]));
  goldens_.add("lm.plain.fast_logits_tf", {books, config_.codebook_size}, flat(fast.logits));
  add_stream(1.0f, prompt);
  add_stream(1.5f, prompt);
}

// The official code stores the input of the fast transformer.
void FixtureFolder::add_long_prompt() {
  const int64_t height = config_.columns(), columns = 90;
  const std::vector<int32_t> prompt = random_columns(config_, columns, random_);
  const ReferenceSlow slow = reference_slow(config_, weights_, prompt);
  const std::vector<int32_t> codes(static_cast<size_t>(config_.num_codebooks));
  const ReferenceFast fast = reference_fast(config_, weights_, slow.layers.back().back(), codes);
  goldens_.add("lm.long.prompt", {height, columns}, turned(prompt, height));
  goldens_.add("lm.long.hidden_last", {config_.fast.dim}, flat(fast.fast_in));
  goldens_.add("lm.long.slow_logits_last", {config_.vocab_size}, flat(slow.logits.back()));
}

// MODEL.md 5 for S1, greedy. The frame after the prompt is sampled without penalties and not remembered; the
// token is penalised by all ids of the first remembered frame, or by id 0, codes by those of their codebook
// and by 0.
void FixtureFolder::add_stream(float penalty, std::span<const int32_t> prompt) {
  const int64_t books = config_.num_codebooks;
  std::vector<int32_t> columns(prompt.begin(), prompt.end()), frames;
  std::vector<float> slow_logits, fast_logits;
  std::vector<std::set<int32_t>> used(static_cast<size_t>(books), std::set<int32_t>{0});
  std::set<int32_t> first_remembered = {0};
  for (int64_t frame = 0; frame < kFrames; ++frame) {
    const bool penalised = frame > 0;
    const ReferenceSlow slow = reference_slow(config_, weights_, columns);
    const auto append = [](std::vector<float>& to, const std::vector<float>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(slow_logits, flat(slow.logits.back()));
    std::vector<int32_t> drawn = {greedy(slow.logits.back(), config_.vocab_size,
                                         penalised ? first_remembered : std::set<int32_t>(),
                                         double{penalty})};
    const int64_t code = int64_t{drawn[0]} - config_.semantic_begin;
    drawn.push_back(static_cast<int32_t>(std::clamp<int64_t>(code, 0, config_.codebook_size - 1)));
    ReferenceFast fast;
    for (int64_t k = 1; k <= books; ++k) {  // the last pass has all codes
      std::vector<int32_t> codes(drawn.begin() + 1, drawn.end());
      codes.resize(static_cast<size_t>(books));
      fast = reference_fast(config_, weights_, slow.layers.back().back(), codes);
      const auto at = static_cast<size_t>(k);
      if (k < books)
        drawn.push_back(greedy(fast.logits[at], config_.residual_codes(),
                               penalised ? used[at] : std::set<int32_t>(), double{penalty}));
    }
    append(fast_logits, flat(fast.logits));
    columns.insert(columns.end(), drawn.begin(), drawn.end());
    frames.insert(frames.end(), drawn.begin(), drawn.end());
    if (!penalised) continue;
    if (frame == 1) first_remembered = {drawn.begin(), drawn.end()};
    for (size_t k = 0; k < used.size(); ++k) used[k].insert(drawn[k + 1]);
    if (drawn[0] == config_.im_end) break;
  }
  const int64_t height = config_.columns(), count = std::ssize(frames) / height;
  goldens_.add(penalty == 1 ? "lm.plain.greedy_rp1.0_tokens" : "lm.plain.greedy_rp1.5_tokens",
               {height, count}, turned(frames, height));
  if (penalty != 1) return;
  goldens_.add("lm.plain.greedy_slow_logits", {count, config_.vocab_size}, slow_logits);
  goldens_.add("lm.plain.greedy_fast_logits", {count, books, config_.codebook_size}, fast_logits);
}

void FixtureFolder::write(const TemporaryFolder& folder) const {
  TensorFile model;
  for (const auto& [name, weight] : weights_) model.add(name, weight.shape, weight.values, DType::bf16);
  folder.write("config.json", config_json_);
  folder.write("model.safetensors", model.bytes());
  folder.write("lm_goldens.safetensors", goldens_.bytes());
  folder.write("lm_goldens.json", R"({"cases": {"plain": {}}})");
  for (const char* name : {"tokenizer.tiktoken", "special_tokens.json"})
    std::filesystem::copy_file(std::string(kTokenizer) + name, folder.path(name),
                               std::filesystem::copy_options::overwrite_existing);
}

}  // namespace shoal::dual_ar::testing
