#include "runtime/voices/named_voices.h"

#include <algorithm>

#include "base/error.h"
#include "base/voice_name.h"
#include "runtime/voices/reference_clip.h"

namespace shoal::runtime {
namespace {

[[noreturn]] void fail_exists(const std::string& name) {
  fail(ErrorCode::already_exists, "voice \"", name, "\": came with the model; choose another name");
}

void check_not_own(const std::string& name) {
  if (is_own_voice_name(name))
    fail(ErrorCode::already_exists, "voice \"", name,
         "\": is reserved for the model's own voice; choose another name");
}

[[noreturn]] void fail_shipped(const std::string& name) {
  fail(ErrorCode::unsupported, "voice \"", name,
       "\": came with the model; voices that were added can be changed");
}

VoiceExamination examine_in(const VoiceFolder& folder, const std::string& name, bool fixed) {
  VoiceExamination found{.name = name, .fixed = fixed};
  try {
    for (const VoiceClip& clip : folder.clips(name)) {
      const audio::Clip sound = audio::read_clip(clip.audio_path);
      check_reference(sound, clip.transcript, clip.audio_path);
      ++found.clips;
      found.seconds += sound.seconds();
    }
  } catch (const Error& error) {
    found.problem = error.message();
  }
  return found;
}

}  // namespace

bool NamedVoices::is_shipped(std::string_view name) const {
  return !shipped_.dir().empty() && shipped_.has(name) && !added_.has(name);
}

std::vector<VoiceInfo> NamedVoices::list() const {
  std::vector<VoiceInfo> voices = added_.list();
  if (!shipped_.dir().empty()) {
    for (VoiceInfo& voice : shipped_.list()) {
      if (added_.has(voice.name)) continue;
      voice.fixed = true;
      voices.push_back(std::move(voice));
    }
  }
  std::ranges::sort(voices, {}, &VoiceInfo::name);
  return voices;
}

VoiceInfo NamedVoices::get(const std::string& name) const {
  VoiceInfo info = folder_of(name).get(name);
  info.fixed = is_shipped(name);
  return info;
}

void NamedVoices::create(const std::string& name, const NewVoice& voice) {
  check_not_own(name);
  if (is_shipped(name)) fail_exists(name);
  added_.create(name, voice);
}

void NamedVoices::rename(const std::string& name, const std::string& new_name) {
  if (is_shipped(name)) fail_shipped(name);
  check_not_own(new_name);
  if (is_shipped(new_name)) fail_exists(new_name);
  added_.rename(name, new_name);
}

void NamedVoices::remove(const std::string& name) {
  if (is_shipped(name)) fail_shipped(name);
  added_.remove(name);
}

void NamedVoices::set_note(const std::string& name, const std::string& note) {
  if (is_shipped(name)) fail_shipped(name);
  added_.set_note(name, note);
}

VoiceExamination NamedVoices::examine(const std::string& name) const {
  return examine_in(folder_of(name), name, is_shipped(name));
}

std::vector<VoiceExamination> NamedVoices::examine_all() const {
  std::vector<VoiceExamination> found;
  for (const std::string& name : added_.names()) found.push_back(examine_in(added_, name, false));
  for (const VoiceInfo& voice : list())
    if (voice.fixed) found.push_back(examine_in(shipped_, voice.name, true));
  return found;
}

}  // namespace shoal::runtime
