#include "runtime/families/language/speech_model.h"

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "models/dac/inventory.h"
#include "models/dual_ar/inventory.h"
#include "runtime/engine/model_precision.h"
#include "runtime/families/language/random_model.h"
#include "shoal/model.h"
#include "weights/checkpoint.h"
#include "weights/name_maps.h"

namespace shoal::runtime {
namespace {

std::string last_part(std::string dir) {
  while (dir.size() > 1 && dir.back() == '/') dir.pop_back();
  return std::string(file_name(dir));
}

void set_token_ids(dual_ar::Config& config, const text::Tokenizer& tokenizer) {
  config.semantic_begin = tokenizer.semantic_begin();
  config.semantic_end = tokenizer.semantic_end();
  config.im_end = tokenizer.im_end();
}

dual_ar::HeadRows head_rows(const ModelOptions& options) {
  return options.semantic_only ? dual_ar::HeadRows::semantic : dual_ar::HeadRows::automatic;
}

dac::Parts parts(const ModelOptions& options) {
  return options.with_encoder ? dac::Parts::both : dac::Parts::decode;
}

}  // namespace

GenerationDefaults GenerationDefaults::read(const std::string& model_dir) {
  GenerationDefaults defaults;
  const std::string path = model_dir + "/generation_config.json";
  if (!is_regular_file(path)) return defaults;
  const Json root = Json::read_file(path, kMaxConfigBytes);
  dual_ar::Sampling sampling;
  const auto number = [&](std::string_view key, std::optional<float>& field, float& checked) {
    if (const Json* value = root.find(key)) field = checked = static_cast<float>(value->as_number());
  };
  number("temperature", defaults.temperature, sampling.temperature);
  number("top_p", defaults.top_p, sampling.top_p);
  number("repetition_penalty", defaults.repetition_penalty, sampling.repetition_penalty);
  if (const Json* value = root.find("normalize")) defaults.normalise = value->as_bool();
  if (const Json* value = root.find("max_chunk_length")) {
    const double bytes = value->as_number();
    if (!(bytes >= 50 && bytes <= 1000))
      fail(ErrorCode::invalid_argument, path, ": max_chunk_length: expected 50 to 1000 bytes, got ", bytes);
    defaults.max_chunk_length = static_cast<int>(bytes);
  }
  if (const Json* value = root.find("languages"))
    for (const Json& language : value->as_array()) defaults.languages.push_back(language.as_string());
  try {
    dual_ar::check_sampling(sampling);
  } catch (const Error& error) {
    fail(error.code(), path, ": ", error.message());
  }
  return defaults;
}

void check_consistency(const text::Tokenizer& tokenizer, const dual_ar::Config& language_model,
                       const dac::Config& codec, const std::string& dir) {
  if (tokenizer.vocab_size() > language_model.vocab_size) {
    fail(ErrorCode::corrupt_file, dir, ": the tokenizer has ", tokenizer.vocab_size(),
         " ids, but the language model only ", language_model.vocab_size);
  }
  if (language_model.num_codebooks != codec.num_codebooks()) {
    fail(ErrorCode::corrupt_file, dir, ": the language model writes ", language_model.num_codebooks,
         " codebooks, but the codec reads ", codec.num_codebooks());
  }
  const int64_t largest =
      std::max(codec.semantic_codebook_size, codec.n_codebooks > 0 ? codec.codebook_size : 0);
  if (largest > language_model.codebook_size) {
    fail(ErrorCode::corrupt_file, dir, ": the codec has codebooks of ", largest,
         " entries, but the language model reads codes up to ", language_model.codebook_size);
  }
  if (codec.n_codebooks > 0 && codec.codebook_size > language_model.residual_codes()) {
    fail(ErrorCode::corrupt_file, dir, ": the codec has residual codebooks of ", codec.codebook_size,
         " entries, but a language model draws from ", language_model.residual_codes(), " at most");
  }
  dual_ar::check_token_ids(language_model);
}

dual_ar::Config read_language_model_config(const weights::ModelFiles& files,
                                           const text::Tokenizer& tokenizer) {
  dual_ar::Config config = dual_ar::Config::read(files.config);
  set_token_ids(config, tokenizer);
  return config;
}

std::optional<weights::Quantisation> read_quantisation(const weights::ModelFiles& files,
                                                       const weights::Checkpoint& checkpoint,
                                                       const dual_ar::Config& config) {
  const auto stored = weights::Quantisation::read(files.config);
  weights::check_quantised(checkpoint, stored, dual_ar::layer_matrices(config));
  return stored;
}

weights::Checkpoint open_codec(const weights::ModelFiles& files, const dac::Config& config, bool in_8_bits) {
  weights::Checkpoint codec = weights::Checkpoint::open(files.codec);
  weights::normalise_codec_names(codec);
  weights::check_quantised_codec(codec, in_8_bits, dac::required_tensors(config, dac::Parts::both));
  return codec;
}

dac::Config read_codec_config(const weights::ModelFiles& files) {
  return files.codec_config.empty() ? dac::Config::published() : dac::Config::read(files.codec_config);
}

Formats chosen_formats(Formats plain, const ModelOptions& options, const dual_ar::Config& config,
                       Device device) {
  check_kv_precision(options.kv_precision, device, config.slow.head_dim);
  return with_kv_precision(with_weights(plain, options.weights, device), options.kv_precision);
}

std::string shipped_voices_dir_of(const std::string& dir) {
  if (random_sizes(dir)) return "";
  return (dir.empty() ? built_in_voice_dir() : dir) + "/voices";
}

// Texts use the built-in voice's tokenizer; nothing else is read.
std::unique_ptr<const SpeechModel> SpeechModel::of_random_weights(const ModelOptions& options,
                                                                  dual_ar::Config config, ops::Context& ctx) {
  constexpr uint64_t kSeed = 1;
  const weights::ModelFiles files = weights::find_model_files(built_in_voice_dir());
  std::unique_ptr<SpeechModel> model(new SpeechModel);
  model->name_ = options.dir;
  model->semantic_only_ = options.semantic_only;
  model->formats_ = chosen_formats(formats_of_random_weights(options.precision), options, config, ctx.device);
  // The built-in voice has the special tokens of S1-mini: one for each code.
  model->tokenizer_ = text::load_tokenizer(files.tokenizer, "");
  set_token_ids(config, *model->tokenizer_);
  model->language_model_ = dual_ar::DualAr::random(
      config, ctx, {.formats = model->formats_, .head_rows = head_rows(options)}, kSeed);
  if (options.with_codec)
    model->codec_ = dac::Codec::random(
        dac::Config::published(), ctx,
        codec_format(model->formats_.operands, options.codec_weights, /*stored=*/false, ctx.device),
        parts(options), kSeed);
  return model;
}

std::unique_ptr<const SpeechModel> SpeechModel::load(const ModelOptions& options, ops::Context& ctx) {
  check_precision(options.precision, ctx.device);
  if (const auto random = random_sizes(options.dir)) return of_random_weights(options, *random, ctx);
  const std::string dir = options.dir.empty() ? built_in_voice_dir() : options.dir;
  const weights::ModelFiles files = weights::find_model_files(dir);

  std::unique_ptr<SpeechModel> model(new SpeechModel);
  model->name_ = options.dir.empty() ? "built-in" : last_part(dir);
  model->semantic_only_ = options.semantic_only;
  model->defaults_ = GenerationDefaults::read(dir);
  model->tokenizer_ = text::load_tokenizer(files.tokenizer, files.special_tokens);
  const dual_ar::Config language_model_config = read_language_model_config(files, *model->tokenizer_);
  const dac::Config codec_config = read_codec_config(files);
  check_consistency(*model->tokenizer_, language_model_config, codec_config, dir);

  weights::Checkpoint language_model = weights::Checkpoint::open(files.weights);
  weights::normalise_dual_ar_names(language_model);
  const auto stored = read_quantisation(files, language_model, language_model_config);
  model->formats_ = chosen_formats(choose_formats(options.precision, language_model, stored), options,
                                   language_model_config, ctx.device);
  model->language_model_ =
      dual_ar::DualAr::load(language_model, language_model_config, ctx,
                            {.formats = model->formats_, .head_rows = head_rows(options)});
  language_model.release_pages();

  if (!options.with_codec) return model;
  const bool stored_codec = stored && stored->codec;
  const weights::Checkpoint codec = open_codec(files, codec_config, stored_codec);
  model->codec_ = dac::Codec::load(
      codec, codec_config, ctx,
      codec_format(model->formats_.operands, options.codec_weights, stored_codec, ctx.device),
      parts(options));
  model->codec_path_ = files.codec.empty() ? "" : files.codec;
  return model;
}

}  // namespace shoal::runtime
