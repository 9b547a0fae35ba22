#include "models/kokoro/inventory.h"

#include <string_view>
#include <unordered_set>

#include "base/error.h"

namespace shoal::kokoro {
namespace {

constexpr int64_t kTokenTypes = 2;
constexpr int64_t kPitchBlocks = 3;    // of F0 and of N; the second one doubles the rows
constexpr int64_t kDecoderBlocks = 4;  // of which the last doubles the rows

std::string indexed(std::string_view stem, int64_t index) { return concat(stem, ".", index); }

class Inventory {
 public:
  explicit Inventory(const Config& config) : config_(config) {}

  std::vector<RequiredTensor> required() {
    bert();
    linear("bert_encoder", config_.hidden_dim, config_.bert_dim);
    predictor();
    decoder();
    text_encoder();
    return std::move(tensors_);
  }
  std::vector<RequiredTensor> unused() {
    linear("bert.pooler", config_.bert_dim, config_.bert_dim);
    return std::move(tensors_);
  }

 private:
  struct Block {
    int64_t in = 0, out = 0;
    bool upsample = false;
  };

  void bert();
  void predictor();
  void pitch(const std::string& name);
  void decoder();
  void generator(const std::string& prefix);
  void text_encoder();
  void styled_block(const std::string& prefix, const Block& block);
  void snake_block(const std::string& prefix, int64_t channels, int64_t kernel);

  void add(const std::string& name, const Shape& shape, bool weight_normed = false) {
    tensors_.push_back({name, shape, name.substr(0, name.find('.')), weight_normed});
  }
  void linear(const std::string& prefix, int64_t outputs, int64_t inputs) {
    add(prefix + ".weight", {outputs, inputs});
    add(prefix + ".bias", {outputs});
  }
  void norm(const std::string& prefix, int64_t channels) {
    add(prefix + ".weight", {channels});
    add(prefix + ".bias", {channels});
  }
  // Stored with weight norm.
  void conv(const std::string& prefix, int64_t outputs, int64_t inputs, int64_t kernel) {
    add(prefix, {outputs, inputs, kernel}, /*weight_normed=*/true);
    add(prefix + ".bias", {outputs});
  }
  void plain_conv(const std::string& prefix, int64_t outputs, int64_t inputs, int64_t kernel) {
    add(prefix + ".weight", {outputs, inputs, kernel});
    add(prefix + ".bias", {outputs});
  }
  // Both directions, together hidden_dim wide.
  void lstm(const std::string& prefix, int64_t inputs) {
    const int64_t hidden = config_.hidden_dim / 2;
    for (const char* direction : {"", "_reverse"}) {
      add(concat(prefix, ".weight_ih_l0", direction), {4 * hidden, inputs});
      add(concat(prefix, ".weight_hh_l0", direction), {4 * hidden, hidden});
      add(concat(prefix, ".bias_ih_l0", direction), {4 * hidden});
      add(concat(prefix, ".bias_hh_l0", direction), {4 * hidden});
    }
  }
  void style(const std::string& prefix, int64_t channels) {
    linear(prefix + ".fc", 2 * channels, config_.style_dim);
  }

  const Config& config_;
  std::vector<RequiredTensor> tensors_;
};

void Inventory::bert() {
  const std::string embeddings = "bert.embeddings";
  add(embeddings + ".word_embeddings.weight", {config_.n_token, config_.embedding_dim});
  add(embeddings + ".position_embeddings.weight", {config_.max_positions, config_.embedding_dim});
  add(embeddings + ".token_type_embeddings.weight", {kTokenTypes, config_.embedding_dim});
  norm(embeddings + ".LayerNorm", config_.embedding_dim);
  linear("bert.encoder.embedding_hidden_mapping_in", config_.bert_dim, config_.embedding_dim);
  const std::string layer = "bert.encoder.albert_layer_groups.0.albert_layers.0";
  for (const char* part : {"query", "key", "value", "dense"})
    linear(concat(layer, ".attention.", part), config_.bert_dim, config_.bert_dim);
  norm(layer + ".attention.LayerNorm", config_.bert_dim);
  norm(layer + ".full_layer_layer_norm", config_.bert_dim);
  linear(layer + ".ffn", config_.bert_intermediate, config_.bert_dim);
  linear(layer + ".ffn_output", config_.bert_dim, config_.bert_intermediate);
}

void Inventory::predictor() {
  const int64_t width = config_.hidden_dim, styled = width + config_.style_dim;
  for (int64_t layer = 0; layer < config_.n_layer; ++layer) {
    lstm(indexed("predictor.text_encoder.lstms", 2 * layer), styled);
    style(indexed("predictor.text_encoder.lstms", 2 * layer + 1), width);
  }
  lstm("predictor.lstm", styled);
  linear("predictor.duration_proj.linear_layer", config_.max_dur, width);
  lstm("predictor.shared", styled);
  pitch("predictor.F0");
  pitch("predictor.N");
}

void Inventory::pitch(const std::string& name) {
  const int64_t width = config_.hidden_dim, half = width / 2;
  const Block blocks[kPitchBlocks] = {{width, width}, {width, half, true}, {half, half}};
  for (int64_t i = 0; i < kPitchBlocks; ++i) styled_block(indexed(name, i), blocks[i]);
  plain_conv(name + "_proj", 1, half, 1);
}

void Inventory::decoder() {
  const int64_t width = config_.decoder_width, inputs = width + config_.decoder_asr_width + 2;
  styled_block("decoder.encode", {config_.hidden_dim + 2, width});
  for (int64_t i = 0; i + 1 < kDecoderBlocks; ++i)
    styled_block(indexed("decoder.decode", i), {inputs, width});
  styled_block(indexed("decoder.decode", kDecoderBlocks - 1),
               {inputs, config_.upsample_initial_channel, true});
  conv("decoder.F0_conv", 1, 1, 3);
  conv("decoder.N_conv", 1, 1, 3);
  conv("decoder.asr_res.0", config_.decoder_asr_width, config_.hidden_dim, 1);
  generator("decoder.generator");
}

void Inventory::generator(const std::string& prefix) {
  linear(prefix + ".m_source.l_linear", 1, config_.harmonics);
  const int64_t spectrum = config_.gen_istft_n_fft + 2, stages = config_.stages();
  int64_t later =
      config_.samples_per_f0() / config_.gen_istft_hop_size;  // rates behind the stage, multiplied
  int64_t channels = config_.upsample_initial_channel;
  for (int64_t i = 0; i < stages; ++i) {
    const auto stage = static_cast<size_t>(i);
    const bool last = i + 1 == stages;
    later /= config_.upsample_rates[stage];
    const std::string up = indexed(prefix + ".ups", i);
    add(up, {channels, channels / 2, config_.upsample_kernel_sizes[stage]}, /*weight_normed=*/true);
    channels /= 2;
    add(up + ".bias", {channels});
    plain_conv(indexed(prefix + ".noise_convs", i), channels, spectrum, last ? 1 : 2 * later);
    snake_block(indexed(prefix + ".noise_res", i), channels, config_.noise_residual_kernel(i));
    const auto kernels = static_cast<int64_t>(config_.resblock_kernel_sizes.size());
    for (int64_t k = 0; k < kernels; ++k)
      snake_block(indexed(prefix + ".resblocks", i * kernels + k), channels,
                  config_.resblock_kernel_sizes[static_cast<size_t>(k)]);
  }
  conv(prefix + ".conv_post", spectrum, channels, 7);
}

void Inventory::text_encoder() {
  const int64_t width = config_.hidden_dim;
  add("text_encoder.embedding.weight", {config_.n_token, width});
  for (int64_t layer = 0; layer < config_.n_layer; ++layer) {
    const std::string prefix = indexed("text_encoder.cnn", layer);
    conv(prefix + ".0", width, width, config_.text_encoder_kernel_size);
    add(prefix + ".1.gamma", {width});
    add(prefix + ".1.beta", {width});
  }
  lstm("text_encoder.lstm", width);
}

void Inventory::styled_block(const std::string& prefix, const Block& block) {
  conv(prefix + ".conv1", block.out, block.in, 3);
  conv(prefix + ".conv2", block.out, block.out, 3);
  style(prefix + ".norm1", block.in);
  style(prefix + ".norm2", block.out);
  if (block.in != block.out) add(prefix + ".conv1x1", {block.out, block.in, 1}, /*weight_normed=*/true);
  if (block.upsample) conv(prefix + ".pool", block.in, 1, 3);
}

void Inventory::snake_block(const std::string& prefix, int64_t channels, int64_t kernel) {
  for (int64_t i = 0; i < kResidualUnits; ++i) {
    for (const char* half : {"1", "2"}) {
      conv(indexed(concat(prefix, ".convs", half), i), channels, channels, kernel);
      style(indexed(concat(prefix, ".adain", half), i), channels);
      add(indexed(concat(prefix, ".alpha", half), i), {1, channels, 1});
    }
  }
}

// Whether `name` is a weight or bias of a norm that `required` modulates by a style.
bool is_own_norm(std::string_view name, const std::unordered_set<std::string>& required) {
  for (const std::string_view ending : {".norm.weight", ".norm.bias"}) {
    if (!name.ends_with(ending)) continue;
    return required.contains(concat(name.substr(0, name.size() - ending.size()), ".fc.weight"));
  }
  return false;
}

std::vector<std::string> problems_of(const weights::Checkpoint& checkpoint, const Config& config) {
  std::vector<std::string> problems;
  std::unordered_set<std::string> known;
  for (const RequiredTensor& tensor : required_tensors(config)) {
    auto [names, problem] = tensor.stored_in(checkpoint);
    if (!problem.empty()) problems.push_back(std::move(problem));
    known.insert(names.begin(), names.end());
  }
  for (const RequiredTensor& tensor : unused_tensors(config)) known.insert(tensor.name);
  for (const weights::StoredTensor& tensor : checkpoint.tensors()) {
    if (!known.contains(tensor.name) && !is_own_norm(tensor.name, known))
      problems.push_back(tensor.name + " is not known");
  }
  return problems;
}

}  // namespace

std::vector<RequiredTensor> required_tensors(const Config& config) { return Inventory(config).required(); }

std::vector<RequiredTensor> unused_tensors(const Config& config) { return Inventory(config).unused(); }

void check_tensors(const weights::Checkpoint& checkpoint, const Config& config) {
  constexpr size_t kShown = 5;
  const std::vector<std::string> problems = problems_of(checkpoint, config);
  if (problems.empty()) return;
  std::string list;
  for (size_t i = 0; i < std::min(problems.size(), kShown); ++i)
    list += concat(i == 0 ? "" : "; ", "tensor ", problems[i]);
  if (problems.size() > kShown) list += concat("; and ", problems.size() - kShown, " more");
  fail(ErrorCode::corrupt_file, checkpoint.path(), ": ", list);
}

}  // namespace shoal::kokoro
