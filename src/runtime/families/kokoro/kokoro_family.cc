#include "runtime/families/kokoro/kokoro_family.h"

#include "base/error.h"
#include "models/kokoro/voices.h"
#include "runtime/families/kokoro/kokoro_pipeline.h"
#include "runtime/families/kokoro/kokoro_request.h"

namespace shoal::runtime {

bool KokoroFamily::recognises(const std::string& model) const { return is_kokoro(model); }

ModelTraits KokoroFamily::traits(const std::string& /*model*/) const { return kokoro_traits(); }

std::vector<std::string> KokoroFamily::validate(const SpeechRequest& request) const {
  return validate_kokoro(request);
}

// The chunks of a long text are spoken together.
void KokoroFamily::prepare_for_one(EngineConfig& config, const SpeechRequest& /*request*/) const {
  config.max_batch_size = config.max_streams = EngineConfig().max_batch_size;
}

ModelVoices KokoroFamily::own_voices(const std::string& model) const {
  if (model == kRandomKokoro) fail(ErrorCode::unsupported, "voices: ", model, " has no folder with voices");
  const kokoro::Voices voices(find_kokoro_files(model).voices);
  ModelVoices own{.dir = voices.dir()};
  for (const std::string& name : voices.names()) {
    const std::optional<kokoro::VoiceTraits> traits = kokoro::traits_of(name);
    own.voices.push_back({.name = name,
                          .language = std::string(traits ? language_alias(traits->language) : ""),
                          .is_default = traits && voices.default_voice(traits->language) == name});
  }
  return own;
}

std::shared_ptr<SpeechPipeline> KokoroFamily::load(const EngineConfig& config) const {
  check_kokoro_formats(config);
  return std::make_shared<KokoroPipeline>(config);
}

}  // namespace shoal::runtime
