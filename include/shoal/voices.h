// Named voices: reference clips that stay.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shoal/speech_request.h"

namespace shoal {

struct VoiceInfo {
  std::string name;
  int64_t clips = 0;
  std::vector<std::string> transcripts;  // one for each clip, in order
  // "en-us", "ja", ...: that its name says (af_heart), of voices that belong to a model; otherwise empty.
  std::string language;
  bool fixed = false;  // came with the model as a clip: it cannot be changed
  // When its first clip was written, and its folder last changed: seconds since 1970; 0: unknown.
  int64_t added_at_s = 0, changed_at_s = 0;
};

// The largest size of a voice's note.
inline constexpr int64_t kMaxVoiceNoteBytes = 64 << 10;

struct NewVoice {
  std::vector<ReferenceClip> clips;  // one to kMostVoiceClips, in their order
  std::string note;                  // as of Voices::set_note
};
inline constexpr size_t kMostVoiceClips = 100;

// A folder of voices in the official layout (NAME/clip.wav with its words in NAME/clip.lab). Names are 1 to
// 255 letters, digits, '-', '_' and ' ', never a path. Thread-safe; others see a change at once and
// completely. Several processes may share a folder.
//
// Reference clips that came with the model (such as the built-in voice's) are voices too. They cannot be
// changed (that throws Error(unsupported)), and their names are reserved.
//
// For a model with voices of its own (ModelTraits::own_voices) these are the voices: they have no clips,
// get() also accepts mixes, and changing them throws Error(unsupported), because they are files of the
// model's folder.
class Voices {
 public:
  virtual ~Voices() = default;

  // Sorted by name. A missing folder has none.
  virtual std::vector<VoiceInfo> list() const = 0;
  // Throws Error: invalid_argument (name), not_found.
  virtual VoiceInfo get(const std::string& name) const = 0;
  // Stores the bytes as they are, after decoding them once. Throws Error: invalid_argument (name, transcript,
  // silence, too short, number of clips), already_exists, corrupt_file (not audio), too_large, io.
  virtual void create(const std::string& name, const NewVoice& voice) = 0;
  // The same with one clip, and without a note.
  void add(const std::string& name, const std::string& audio, const std::string& text) {
    create(name, {.clips = {{.audio = audio, .text = text}}, .note = {}});
  }
  // Throws Error: invalid_argument, not_found, already_exists, io.
  virtual void rename(const std::string& name, const std::string& new_name) = 0;
  virtual void remove(const std::string& name) = 0;

  // Text about a voice that its keeper stores beside the clips (title, tags, ...); "" without one. It never
  // changes the sound. Throws Error: invalid_argument (name), not_found, too_large, io.
  virtual std::string note(const std::string& name) const = 0;
  // Replaces it. Throws Error: as note(), and unsupported.
  virtual void set_note(const std::string& name, const std::string& note) = 0;
};

}  // namespace shoal
