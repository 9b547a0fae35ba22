// A Kokoro model folder, loaded and ready to speak.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/kokoro/kokoro.h"
#include "models/kokoro/voices.h"
#include "ops/context.h"
#include "shoal/engine_config.h"
#include "shoal/voices.h"
#include "text/phonemes/symbols.h"

namespace shoal::runtime {

// A model name for random weights at the published sizes with one random voice, for benchmarks.
inline constexpr std::string_view kRandomKokoro = "random:kokoro";

// Paths. `model`: the folder, or a checkpoint in it where there are several.
struct KokoroFiles {
  std::string dir, config, weights, voices;
};

// Whether a model belongs to this family: kRandomKokoro, or its config.json has an istftnet. Throws nothing:
// an unreadable model does not.
bool is_kokoro(const std::string& model);

// config.json, the checkpoint (kokoro-v1_0.pth, or the only *.pth or *.safetensors), and voices/, or the
// folder itself if the voices are in it. Throws Error (not_found, or invalid_argument when there are several
// checkpoints) with one sentence that says what is missing and what to do.
KokoroFiles find_kokoro_files(const std::string& model);

// Throws Error(unsupported) for anything but automatic.
void check_kokoro_formats(const EngineConfig& config);

// Of a model that is not loaded: its dimensions, and the dtype that its decoder's matrices would have.
struct KokoroSizes {
  kokoro::Config config;
  DType dtype = DType::f32;
};
// Throws the Errors of KokoroModel::load for the files that it reads.
KokoroSizes kokoro_sizes(const std::string& model, Precision precision, Device device);

// Immutable once loaded; any thread may use it.
class KokoroModel : public Voices {
 public:
  // Throws Error naming the file: not_found, corrupt_file, unsupported, invalid_argument.
  static std::unique_ptr<const KokoroModel> load(const std::string& model, Precision precision,
                                                 ops::Context& ctx);
  static std::unique_ptr<const KokoroModel> random(const kokoro::Config& config, Precision precision,
                                                   ops::Context& ctx);

  const std::string& name() const { return name_; }  // the folder's last part
  Precision precision() const;
  const kokoro::Kokoro& network() const { return *network_; }
  const phonemes::SymbolIds& symbols() const { return symbols_; }
  // Of one chunk, pads not counted.
  int most_phonemes() const;

  // A voice or a mix. Throws Error: invalid_argument, not_found, as kokoro::Voices::get.
  kokoro::Voice voice(const std::string& expression) const;
  // The published default of a language, or its first voice. Throws Error: invalid_argument, not_found.
  std::string default_voice(char language) const;
  const std::vector<std::string>& names() const;

  // Voices: without clips, and never changed.
  std::vector<VoiceInfo> list() const override;
  VoiceInfo get(const std::string& name) const override;
  void create(const std::string& name, const NewVoice& voice) override;
  void rename(const std::string& name, const std::string& new_name) override;
  void remove(const std::string& name) override;
  std::string note(const std::string& name) const override;  // none has one
  void set_note(const std::string& name, const std::string& note) override;

 private:
  KokoroModel() = default;
  void take(kokoro::Kokoro network);

  std::string name_;
  std::optional<kokoro::Kokoro> network_;
  phonemes::SymbolIds symbols_;
  std::optional<kokoro::Voices> voices_;  // none: one random voice
  std::vector<std::string> random_names_;
  std::shared_ptr<const kokoro::VoicePack> random_pack_;
};

// "en-us", ..., "ja", "zh": the language of a letter in the callers' notation; empty for any other letter.
std::string_view language_alias(char letter);

}  // namespace shoal::runtime
