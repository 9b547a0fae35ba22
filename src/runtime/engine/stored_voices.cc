#include "shoal/stored_voices.h"

#include "audio/clip.h"
#include "runtime/engine/family.h"
#include "runtime/voices/named_voices.h"
#include "runtime/voices/reference_clip.h"

namespace shoal {

ModelVoices model_voices(const std::string& model) { return runtime::family_of(model).own_voices(model); }

std::unique_ptr<ClipVoices> clip_voices(const EngineConfig& config) {
  return std::make_unique<runtime::NamedVoices>(
      config.references_dir, runtime::family_of(config.model).shipped_voices_dir(config.model));
}

void check_reference(const ReferenceClip& clip, const std::string& name) {
  runtime::check_reference(audio::decode_clip(std::as_bytes(std::span(clip.audio)), name), clip.text, name);
}

}  // namespace shoal
