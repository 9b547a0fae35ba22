// Voices as files, without an engine: what `Engine::voices()` answers with once one runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/engine_config.h"
#include "shoal/speech_request.h"
#include "shoal/voices.h"

namespace shoal {

// A voice of a model that has its own (ModelTraits::own_voices).
struct ModelVoice {
  std::string name;
  std::string language;     // "en-us", "ja", ...: from its name; empty: unknown
  bool is_default = false;  // of its language
};

struct ModelVoices {
  std::string dir;                 // of their files
  std::vector<ModelVoice> voices;  // sorted by name
};

// The model's own voices; the files are not opened. `model` as EngineConfig::model. Throws Error: unsupported
// (a model without voices of its own, or without a folder), not_found, invalid_argument.
ModelVoices model_voices(const std::string& model);

// A clip of a voice.
struct VoiceClip {
  std::string audio_path;
  std::string transcript;
};

// The result of decoding the clips of a voice.
struct VoiceExamination {
  std::string name;
  bool fixed = false;  // came with the model as clips
  int64_t clips = 0;
  double seconds = 0;   // of all clips that could be used
  std::string problem;  // why the voice cannot be used; empty: it can
};

// Voices that are reference clips: those in a folder, and those that came with a model.
class ClipVoices : public Voices {
 public:
  // The clips in order of their file names; the audio is not opened. Throws Error: invalid_argument (name; a
  // transcript that is empty or not UTF-8), not_found, too_large (a transcript), io.
  virtual std::vector<VoiceClip> clips(std::string_view name) const = 0;
  // Decodes the clips. Throws nothing: errors are reported in `problem`.
  virtual VoiceExamination examine(const std::string& name) const = 0;
  // Every voice, usable or not: first those in the folder, then those of the model, each sorted by name.
  virtual std::vector<VoiceExamination> examine_all() const = 0;
  // The folder of the voices that can be changed.
  virtual const std::string& dir() const = 0;
  // The folder of voices that came with the model, which may not exist; empty: the model has none.
  virtual const std::string& model_dir() const = 0;
};

// The voices in references_dir and those that came with the model. The clips are not read yet. Throws
// Error(not_found) when the built-in voice is selected but not installed.
std::unique_ptr<ClipVoices> clip_voices(const EngineConfig& config);

// Throws Error(invalid_argument) unless `name` is 1 to 255 letters, digits, '-', '_' or ' '.
void check_voice_name(std::string_view name);

// The largest size of a clip's transcript: about an hour of speech.
inline constexpr int64_t kMaxTranscriptBytes = 64 << 10;

// Decodes a clip and checks it with its words, as a request that follows it would. `name` begins the
// messages. Throws Error: invalid_argument (silence, too short, no words, not UTF-8), too_large (over 120 s
// or 64 MiB, too many words), corrupt_file (not audio).
void check_reference(const ReferenceClip& clip, const std::string& name);

}  // namespace shoal
