// Everything that one model folder holds, loaded and ready to speak.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "models/dac/codec.h"
#include "models/dual_ar/dual_ar.h"
#include "ops/context.h"
#include "shoal/engine_config.h"
#include "text/tokenizer.h"
#include "weights/checkpoint.h"
#include "weights/model_dir.h"
#include "weights/quantised.h"

namespace shoal::runtime {

struct ModelOptions {
  std::string dir;  // empty: the built-in voice; or a name that random_sizes() knows
  Precision precision = Precision::automatic;
  WeightFormat weights = WeightFormat::automatic;
  KvPrecision kv_precision = KvPrecision::automatic;
  CodecWeights codec_weights = CodecWeights::automatic;
  bool with_encoder = false;   // needed for reference clips
  bool with_codec = true;      // false: its configuration is read, codec() must not be asked for
  bool semantic_only = false;  // never sample text tokens (the reference samples over everything)
};

// The values in generation_config.json beside the weights, if it exists. Absent values are those of the
// family (dual_ar::Sampling).
struct GenerationDefaults {
  std::optional<float> temperature, top_p, repetition_penalty;
  // Key "max_chunk_length": bytes of text that the model speaks in one piece at most (50 or more).
  std::optional<int> max_chunk_length;
  bool normalise = false;  // key "normalize": the model expects numbers, dates and money as English words
  // Key "languages": the languages that the model has learned, ISO 639-1; empty: unknown.
  std::vector<std::string> languages;

  // Throws Error naming the file: invalid_argument for values out of range, corrupt_file for values of
  // another type.
  static GenerationDefaults read(const std::string& model_dir);
};

// Immutable once loaded; any thread may use it.
class SpeechModel {
 public:
  // Throws Error naming the file: not_found, corrupt_file, unsupported, resource_exhausted; as
  // check_precision and check_weights.
  static std::unique_ptr<const SpeechModel> load(const ModelOptions& options, ops::Context& ctx);

  const std::string& name() const { return name_; }  // the folder's last part; "built-in" for our own voice
  const Formats& formats() const { return formats_; }
  bool semantic_only() const { return semantic_only_; }
  // The file that the codec came from; empty for random weights.
  const std::string& codec_path() const { return codec_path_; }
  const GenerationDefaults& defaults() const { return defaults_; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  const dual_ar::DualAr& language_model() const { return *language_model_; }
  const dac::Codec& codec() const { return *codec_; }

 private:
  SpeechModel() = default;
  static std::unique_ptr<const SpeechModel> of_random_weights(const ModelOptions& options,
                                                              dual_ar::Config config, ops::Context& ctx);

  std::string name_, codec_path_;
  Formats formats_;
  bool semantic_only_ = false;
  GenerationDefaults defaults_;
  std::unique_ptr<const text::Tokenizer> tokenizer_;
  std::optional<dual_ar::DualAr> language_model_;
  std::optional<dac::Codec> codec_;
};

// The folder of the reference clips that come with a model (NAME/clip.opus, NAME/clip.lab): `voices` in its
// folder. dir: as in ModelOptions. Empty for a model without a folder.
std::string shipped_voices_dir_of(const std::string& dir);

// The configuration of a model folder with the semantic ids of its tokenizer filled in.
dual_ar::Config read_language_model_config(const weights::ModelFiles& files,
                                           const text::Tokenizer& tokenizer);
// What config.json says of weights of 8 and 4 bits, when the checkpoint (names normalised) is as it says;
// absent: there are none. Throws Error as weights::Quantisation::parse and weights::check_quantised.
std::optional<weights::Quantisation> read_quantisation(const weights::ModelFiles& files,
                                                       const weights::Checkpoint& checkpoint,
                                                       const dual_ar::Config& config);
// The codec's checkpoint, names normalised, as config.json says it is. Throws Error as Checkpoint::open and
// weights::check_quantised_codec.
weights::Checkpoint open_codec(const weights::ModelFiles& files, const dac::Config& config, bool in_8_bits);
// Throws Error(corrupt_file) unless tokenizer, language model and codec speak of the same tokens and codes.
void check_consistency(const text::Tokenizer& tokenizer, const dual_ar::Config& language_model,
                       const dac::Config& codec, const std::string& dir);
// codec_config.json if it exists, otherwise the published values (dac/MODEL.md).
dac::Config read_codec_config(const weights::ModelFiles& files);

}  // namespace shoal::runtime
