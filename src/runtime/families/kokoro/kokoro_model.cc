#include "runtime/families/kokoro/kokoro_model.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/printable.h"
#include "runtime/engine/model_precision.h"
#include "weights/checkpoint.h"
#include "weights/name_maps.h"
#include "weights/quantised.h"

namespace shoal::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPublishedCheckpoint = "kokoro-v1_0.pth";
constexpr const char* kRandomVoice = "af_random";
constexpr int kFewestPhonemes = 16;  // of a chunk: less cannot be cut sensibly

bool is_checkpoint(const fs::path& path) {
  return path.extension() == ".pth" || path.extension() == ".safetensors";
}

std::string folder_of(const std::string& model) {
  std::error_code error;
  const fs::path path(model);
  if (!is_checkpoint(path) || !fs::is_regular_file(path, error)) return model;
  return path.parent_path().empty() ? "." : path.parent_path().string();
}

std::string find_checkpoint(const std::string& dir) {
  const std::string published = dir + "/" + kPublishedCheckpoint;
  std::error_code error;
  if (fs::exists(published, error)) return published;
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, error))
    if (is_checkpoint(entry.path())) found.push_back(entry.path().string());
  std::ranges::sort(found);
  if (found.empty())
    fail(ErrorCode::not_found, "model ", printable(dir), ": has no ", kPublishedCheckpoint,
         " and no other *.pth or *.safetensors; copy the checkpoint there");
  if (found.size() > 1)
    fail(ErrorCode::invalid_argument, "model ", printable(dir), ": has ", found.size(),
         " checkpoints and none is called ", kPublishedCheckpoint, "; name one of them, as ",
         printable(found.front()));
  return found.front();
}

void tell_choice(Precision precision, DType dtype, const weights::Checkpoint& checkpoint) {
  if (precision != Precision::automatic || dtype == DType::f32 || is_stored_in_16_bits(checkpoint)) return;
  log(LogLevel::info, "precision: auto takes bfloat16, which this device is made for; ",
      "--precision float32 keeps the checkpoint's");
}

}  // namespace

std::string_view language_alias(char letter) {
  switch (letter) {
    case 'a':
      return "en-us";
    case 'b':
      return "en-gb";
    case 'e':
      return "es";
    case 'f':
      return "fr-fr";
    case 'h':
      return "hi";
    case 'i':
      return "it";
    case 'j':
      return "ja";
    case 'p':
      return "pt-br";
    case 'z':
      return "zh";
    default:
      return {};
  }
}

bool is_kokoro(const std::string& model) {
  if (model == kRandomKokoro) return true;
  if (model.empty()) return false;
  try {
    const Json config = Json::read_file(folder_of(model) + "/config.json", kMaxConfigBytes);
    return config.is_object() && config.find("istftnet") != nullptr;
  } catch (const Error&) {
    return false;
  }
}

KokoroFiles find_kokoro_files(const std::string& model) {
  KokoroFiles files{.dir = folder_of(model)};
  files.config = files.dir + "/config.json";
  files.weights = files.dir == model ? find_checkpoint(files.dir) : model;
  files.voices = files.dir + "/voices";
  std::error_code error;
  if (!fs::is_directory(files.voices, error)) files.voices = files.dir;
  if (weights::Quantisation::read(files.config))
    fail(ErrorCode::unsupported, files.config,
         ": quantization_config: weights of 8 and 4 bits are for language models");
  return files;
}

void check_kokoro_formats(const EngineConfig& config) {
  if (config.weights != WeightFormat::automatic)
    fail(ErrorCode::unsupported, "weights: ", name_of(config.weights),
         " is for language models; Kokoro's are kept in its precision: use auto");
  if (config.kv_precision == KvPrecision::int8)
    fail(ErrorCode::unsupported,
         "kv_precision: int8 is for language models; Kokoro keeps no keys and values");
  if (config.codec_weights != CodecWeights::automatic)
    fail(ErrorCode::unsupported, "codec_weights: int8 is for the codecs of language models; Kokoro has none");
}

KokoroSizes kokoro_sizes(const std::string& model, Precision precision, Device device) {
  check_precision(precision, device);
  if (model == kRandomKokoro) return {kokoro::Config::published(), choose_dtype(precision, device, nullptr)};
  const KokoroFiles files = find_kokoro_files(model);
  KokoroSizes sizes{.config = kokoro::Config::read(files.config)};
  weights::Checkpoint checkpoint = weights::Checkpoint::open(files.weights);
  weights::normalise_kokoro_names(checkpoint);
  sizes.config.take_widths(checkpoint);
  sizes.dtype = choose_dtype(precision, device, &checkpoint);
  return sizes;
}

std::unique_ptr<const KokoroModel> KokoroModel::load(const std::string& model, Precision precision,
                                                     ops::Context& ctx) {
  check_precision(precision, ctx.device);
  if (model == kRandomKokoro) return random(kokoro::Config::published(), precision, ctx);
  const KokoroFiles files = find_kokoro_files(model);
  kokoro::Config config = kokoro::Config::read(files.config);
  weights::Checkpoint checkpoint = weights::Checkpoint::open(files.weights);
  weights::normalise_kokoro_names(checkpoint);
  config.take_widths(checkpoint);
  std::unique_ptr<KokoroModel> loaded(new KokoroModel());
  loaded->name_ = fs::weakly_canonical(files.dir).filename().string();
  loaded->voices_.emplace(files.voices);
  if (loaded->voices_->names().empty())
    fail(ErrorCode::not_found, "model ", printable(files.dir),
         ": has no voices; copy voices/*.pt, voices/*.bin or voices-v1.0.bin there");
  const DType dtype = choose_dtype(precision, ctx.device, &checkpoint);
  loaded->take(kokoro::Kokoro::load(checkpoint, config, ctx, dtype));
  tell_choice(precision, dtype, checkpoint);
  checkpoint.release_pages();
  return loaded;
}

std::unique_ptr<const KokoroModel> KokoroModel::random(const kokoro::Config& config, Precision precision,
                                                       ops::Context& ctx) {
  std::unique_ptr<KokoroModel> made(new KokoroModel());
  made->name_ = kRandomKokoro;
  made->random_names_ = {kRandomVoice};
  made->random_pack_ = std::make_shared<const kokoro::VoicePack>(kokoro::VoicePack::random(1));
  made->take(kokoro::Kokoro::random(config, ctx, choose_dtype(precision, ctx.device, nullptr), 1));
  return made;
}

void KokoroModel::take(kokoro::Kokoro network) {
  network_.emplace(std::move(network));
  for (const kokoro::Symbol& symbol : network_->config().vocab) symbols_[symbol.code_point] = symbol.id;
  if (most_phonemes() < kFewestPhonemes)
    fail(ErrorCode::unsupported, "model ", name_, ": reads ", most_phonemes(),
         " phonemes at a time, fewer than ", kFewestPhonemes);
}

Precision KokoroModel::precision() const { return precision_of(network_->dtype()); }

int KokoroModel::most_phonemes() const { return static_cast<int>(network_->config().most_phonemes()); }

const std::vector<std::string>& KokoroModel::names() const {
  return voices_ ? voices_->names() : random_names_;
}

kokoro::Voice KokoroModel::voice(const std::string& expression) const {
  if (voices_) return voices_->get(expression);
  kokoro::parse_voice_mix(expression, [](std::string_view name) { return name == kRandomVoice; });
  return {.key = kRandomVoice, .traits = kokoro::traits_of(kRandomVoice), .pack = random_pack_};
}

std::string KokoroModel::default_voice(char language) const {
  return voices_ ? voices_->default_voice(language) : kRandomVoice;
}

std::vector<VoiceInfo> KokoroModel::list() const {
  std::vector<VoiceInfo> list;
  for (const std::string& name : names()) {
    const std::optional<kokoro::VoiceTraits> traits = kokoro::traits_of(name);
    list.push_back({.name = name, .language = std::string(traits ? language_alias(traits->language) : "")});
  }
  return list;
}

VoiceInfo KokoroModel::get(const std::string& name) const {
  const kokoro::Voice found = voice(name);
  return {.name = name, .language = std::string(found.traits ? language_alias(found.traits->language) : "")};
}

namespace {
[[noreturn]] void refuse_change() {
  fail(ErrorCode::unsupported, "voices: those of this model are files of its folder");
}
}  // namespace

void KokoroModel::create(const std::string& /*name*/, const NewVoice& /*voice*/) { refuse_change(); }
void KokoroModel::rename(const std::string& /*name*/, const std::string& /*new_name*/) { refuse_change(); }
void KokoroModel::remove(const std::string& /*name*/) { refuse_change(); }
void KokoroModel::set_note(const std::string& /*name*/, const std::string& /*note*/) { refuse_change(); }
std::string KokoroModel::note(const std::string& name) const {
  get(name);
  return "";
}

}  // namespace shoal::runtime
