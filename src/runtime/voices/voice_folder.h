// Named voices on disk: DIR/NAME/clip.wav with its words in DIR/NAME/clip.lab, as fish-speech has them, and
// perhaps a note in DIR/NAME/shoal-note.json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "shoal/stored_voices.h"

namespace shoal::runtime {

// All state is on disk, so that several processes may share a folder: a voice is added and renamed by one
// rename(2) of a folder, and removed by first renaming it away. Folders without a valid voice name (such as
// unfinished ones) are ignored. Symbolic links are followed for reading, never for deleting: anyone who can
// write to the folder chooses their target.
class VoiceFolder : public Voices {
 public:
  explicit VoiceFolder(std::string dir) : dir_(std::move(dir)) {}

  // Without the voices whose transcripts cannot be read; each of those causes a log line.
  std::vector<VoiceInfo> list() const override;
  VoiceInfo get(const std::string& name) const override;
  void create(const std::string& name, const NewVoice& voice) override;
  void rename(const std::string& name, const std::string& new_name) override;
  void remove(const std::string& name) override;
  std::string note(const std::string& name) const override;
  // By one rename(2) of a file.
  void set_note(const std::string& name, const std::string& note) override;

  // Whether there is a clip with a transcript, usable or not; false for an invalid name.
  bool has(std::string_view name) const;
  // Every folder with at least one clip that has a transcript, usable or not, sorted. A missing folder has
  // none.
  std::vector<std::string> names() const;
  // The clips of a voice in order of their file names; the audio is not opened. Throws Error:
  // invalid_argument (name; a transcript that is empty or not UTF-8), not_found, too_large (a transcript),
  // io.
  std::vector<VoiceClip> clips(std::string_view name) const;
  // Calls `look` until the name has the same folder after it as before: then all that it read is of one
  // voice. Another process may replace a voice at any time, between its words and its sound. Throws what
  // `look` throws while nobody does; Error(unavailable) if the voice is replaced again and again.
  void look_at(std::string_view name, FunctionRef<void()> look) const;
  const std::string& dir() const { return dir_; }

 private:
  std::string dir_;
};

}  // namespace shoal::runtime
