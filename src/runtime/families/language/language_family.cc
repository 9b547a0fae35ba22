#include "runtime/families/language/language_family.h"

#include "base/error.h"
#include "runtime/families/language/pipeline.h"
#include "runtime/families/language/random_model.h"
#include "runtime/families/language/speech_plan.h"

namespace shoal::runtime {
namespace {

constexpr const char* name_of_family(dual_ar::Family family) {
  return family == dual_ar::Family::s1 ? "s1" : "s2";
}

// As ModelTraits::family; empty for models of other families.
std::string family_in(const std::string& model) {
  if (const auto random = random_sizes(model)) return name_of_family(random->family);
  try {
    const std::string dir = model.empty() ? built_in_voice_dir() : model;
    return name_of_family(dual_ar::Config::read(dir + "/config.json").family);
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

bool LanguageFamily::recognises(const std::string& model) const {
  return model.empty() || !family_in(model).empty();
}

ModelTraits traits_of_family(std::string_view family) {
  if (family == "s2") return {.family = "s2", .speakers = true, .tags = "brackets"};
  return {.family = std::string(family), .tags = family.empty() ? "" : "parentheses"};
}

ModelTraits LanguageFamily::traits(const std::string& model) const {
  return traits_of_family(family_in(model));
}

std::vector<std::string> LanguageFamily::validate(const SpeechRequest& request) const {
  return runtime::validate(request);
}

// Its utterances follow one another; only clips need the encoder.
void LanguageFamily::prepare_for_one(EngineConfig& config, const SpeechRequest& request) const {
  config.with_encoder = !request.references.empty() || !request.voice.empty() || !request.voices.empty();
}

std::string LanguageFamily::shipped_voices_dir(const std::string& model) const {
  return shipped_voices_dir_of(model);
}

std::shared_ptr<SpeechPipeline> LanguageFamily::load(const EngineConfig& config) const {
  return std::make_shared<Pipeline>(config);
}

}  // namespace shoal::runtime
