// Named voices: reference clips that stay.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shoal {

struct VoiceInfo {
  std::string name;
  int64_t clips = 0;
  std::vector<std::string> transcripts;  // one for each clip, in order
  // "en-us", "ja", ...: that its name says (af_heart), of voices that belong to a model; otherwise empty.
  std::string language;
  bool fixed = false;  // came with the model as a clip: it cannot be changed
};

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
  // silence, too short), already_exists, corrupt_file (not audio), too_large, io.
  virtual void add(const std::string& name, const std::string& audio, const std::string& text) = 0;
  // Throws Error: invalid_argument, not_found, already_exists, io.
  virtual void rename(const std::string& name, const std::string& new_name) = 0;
  virtual void remove(const std::string& name) = 0;
};

}  // namespace shoal
