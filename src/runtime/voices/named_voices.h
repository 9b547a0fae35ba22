// The voices that a request may name: added ones, and those that came with the model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/voices/voice_folder.h"

namespace shoal::runtime {

// Two folders in the layout of VoiceFolder. Only the first is ever written to; where both have a name, it is
// the first one's voice.
class NamedVoices : public ClipVoices {
 public:
  // shipped: empty if the model has none.
  NamedVoices(std::string added, std::string shipped)
      : added_(std::move(added)), shipped_(std::move(shipped)) {}

  // Sorted by name.
  std::vector<VoiceInfo> list() const override;
  VoiceInfo get(const std::string& name) const override;
  // Besides the Errors of VoiceFolder: already_exists (create, rename) and unsupported (rename, remove,
  // set_note) for the name of a voice that came with the model; already_exists (create, rename) for a name of
  // the model's own voice (is_own_voice_name), which a folder made by hand may have.
  void create(const std::string& name, const NewVoice& voice) override;
  void rename(const std::string& name, const std::string& new_name) override;
  void remove(const std::string& name) override;
  std::string note(const std::string& name) const override { return folder_of(name).note(name); }
  void set_note(const std::string& name, const std::string& note) override;

  std::vector<VoiceClip> clips(std::string_view name) const override { return folder_of(name).clips(name); }
  void look_at(std::string_view name, FunctionRef<void()> look) const { folder_of(name).look_at(name, look); }
  VoiceExamination examine(const std::string& name) const override;
  std::vector<VoiceExamination> examine_all() const override;
  const std::string& dir() const override { return added_.dir(); }
  const std::string& model_dir() const override { return shipped_.dir(); }
  const VoiceFolder& added() const { return added_; }
  const VoiceFolder& shipped() const { return shipped_; }

 private:
  bool is_shipped(std::string_view name) const;
  const VoiceFolder& folder_of(std::string_view name) const { return is_shipped(name) ? shipped_ : added_; }

  VoiceFolder added_, shipped_;
};

}  // namespace shoal::runtime
