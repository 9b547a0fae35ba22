#include "models/kokoro/config.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace shoal::kokoro {
namespace {

std::vector<int64_t> integers(const Json& array) {
  std::vector<int64_t> values;
  for (const Json& value : array.as_array()) values.push_back(value.as_integer());
  return values;
}

// The one code point that `text`, which is well-formed UTF-8, consists of.
std::optional<char32_t> only_code_point(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t bytes = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() != bytes) return std::nullopt;
  auto code_point = static_cast<char32_t>(bytes == 1 ? first : first & (0x7F >> bytes));
  for (const char c : text.substr(1)) code_point = code_point << 6 | (static_cast<unsigned char>(c) & 0x3F);
  return code_point;
}

void sort_vocabulary(std::vector<Symbol>& vocabulary) {
  std::ranges::sort(vocabulary, {}, &Symbol::code_point);
}

std::vector<Symbol> read_vocabulary(const Json& vocab, int64_t tokens) {
  std::vector<Symbol> symbols;
  for (const auto& [key, value] : vocab.as_object()) {
    const std::optional<char32_t> code_point = only_code_point(key);
    if (!code_point)
      fail(ErrorCode::invalid_argument, value.where(), ": expected a key of one character, got ", key.size(),
           " bytes");
    const int64_t id = value.as_integer();
    if (id < 1 || id >= tokens)
      fail(ErrorCode::invalid_argument, value.where(), ": expected an id of 1 to ", tokens - 1,
           " (0 is the pad), got ", id);
    symbols.push_back({*code_point, static_cast<int32_t>(id)});
  }
  sort_vocabulary(symbols);
  return symbols;
}

// A key that may be left out, whose every other value means another computation.
template <typename T, typename Read>
void require_default(const Json& object, std::string_view key, const T& expected, const Read& read) {
  const Json* value = object.find(key);
  if (value && read(*value) != expected)
    fail(ErrorCode::unsupported, value->where(), ": expected ", expected, ", got ", read(*value));
}

void read_plbert(const Json& plbert, Config& config) {
  const auto integer = [](const Json& value) { return value.as_integer(); };
  const auto text = [](const Json& value) { return value.as_string(); };
  require_default(plbert, "num_hidden_groups", int64_t{1}, integer);
  require_default(plbert, "inner_group_num", int64_t{1}, integer);
  require_default(plbert, "layer_norm_eps", 1e-12, [](const Json& value) { return value.as_number(); });
  require_default(plbert, "hidden_act", std::string("gelu_new"), text);
  require_default(plbert, "position_embedding_type", std::string("absolute"), text);
  config.bert_dim = plbert.at("hidden_size").as_integer();
  config.bert_heads = plbert.at("num_attention_heads").as_integer();
  config.bert_intermediate = plbert.at("intermediate_size").as_integer();
  config.max_positions = plbert.at("max_position_embeddings").as_integer();
  config.bert_layers = plbert.at("num_hidden_layers").as_integer();
}

void read_istftnet(const Json& istftnet, Config& config) {
  config.upsample_rates = integers(istftnet.at("upsample_rates"));
  config.upsample_kernel_sizes = integers(istftnet.at("upsample_kernel_sizes"));
  config.upsample_initial_channel = istftnet.at("upsample_initial_channel").as_integer();
  config.resblock_kernel_sizes = integers(istftnet.at("resblock_kernel_sizes"));
  for (const Json& dilations : istftnet.at("resblock_dilation_sizes").as_array())
    config.resblock_dilation_sizes.push_back(integers(dilations));
  config.gen_istft_n_fft = istftnet.at("gen_istft_n_fft").as_integer();
  config.gen_istft_hop_size = istftnet.at("gen_istft_hop_size").as_integer();
}

// Dimension `axis` of a tensor of that rank.
int64_t width_of(const weights::Checkpoint& checkpoint, std::string_view name, int rank, int axis) {
  const TensorView* tensor = checkpoint.find(name);
  if (!tensor)
    fail(ErrorCode::not_found, checkpoint.path(), ": tensor ", name,
         " is missing: it is no checkpoint of Kokoro");
  if (tensor->rank() != rank)
    fail(ErrorCode::corrupt_file, checkpoint.path(), ": tensor ", name, ": expected ", rank,
         " dimensions, found shape ", tensor->shape());
  return tensor->dim(axis);
}

}  // namespace

int64_t Config::samples_per_f0() const {
  int64_t samples = gen_istft_hop_size;
  for (const int64_t rate : upsample_rates) samples *= rate;
  return samples;
}

int64_t Config::most_phonemes() const { return std::min(kMostPhonemes, max_positions - 2); }

std::optional<int32_t> Config::id_of(char32_t code_point) const {
  const auto found = std::ranges::lower_bound(vocab, code_point, {}, &Symbol::code_point);
  if (found == vocab.end() || found->code_point != code_point) return std::nullopt;
  return found->id;
}

Config Config::published() {
  Config config;
  config.n_token = 178;
  config.hidden_dim = 512;
  config.style_dim = 128;
  config.n_layer = 3;
  config.max_dur = 50;
  config.text_encoder_kernel_size = 5;
  config.bert_dim = 768;
  config.bert_heads = 12;
  config.bert_intermediate = 2048;
  config.bert_layers = 12;
  config.max_positions = 512;
  config.upsample_rates = {10, 6};
  config.upsample_kernel_sizes = {20, 12};
  config.upsample_initial_channel = 512;
  config.resblock_kernel_sizes = {3, 7, 11};
  config.resblock_dilation_sizes = {{1, 3, 5}, {1, 3, 5}, {1, 3, 5}};
  config.gen_istft_n_fft = 20;
  config.gen_istft_hop_size = 5;
  config.vocab = published_vocabulary();
  sort_vocabulary(config.vocab);
  return config;
}

Config Config::read(const std::string& path) {
  const Json document = Json::read_file(path, kMaxConfigBytes);
  Config config;
  config.n_token = document.at("n_token").as_integer();
  config.hidden_dim = document.at("hidden_dim").as_integer();
  config.style_dim = document.at("style_dim").as_integer();
  config.n_layer = document.at("n_layer").as_integer();
  config.max_dur = document.at("max_dur").as_integer();
  config.text_encoder_kernel_size = document.at("text_encoder_kernel_size").as_integer();
  read_plbert(document.at("plbert"), config);
  read_istftnet(document.at("istftnet"), config);
  config.vocab = read_vocabulary(document.at("vocab"), config.n_token);
  config.validate(path);
  return config;
}

void Config::take_widths(const weights::Checkpoint& checkpoint) {
  embedding_dim = width_of(checkpoint, "bert.embeddings.word_embeddings.weight", 2, 1);
  decoder_width = width_of(checkpoint, "decoder.encode.conv1.bias", 1, 0);
  decoder_asr_width = width_of(checkpoint, "decoder.asr_res.0.bias", 1, 0);
  harmonics = width_of(checkpoint, "decoder.generator.m_source.l_linear.weight", 2, 1);
  validate(checkpoint.path());
}

}  // namespace shoal::kokoro
