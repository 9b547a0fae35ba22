// The voices of a model: a folder of their files, and mixes of them.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "models/kokoro/voice_mix.h"
#include "models/kokoro/voice_pack.h"

namespace shoal::kokoro {

struct Voice {
  std::string key;                    // equal for equal packs of one Voices: a cache key
  std::optional<VoiceTraits> traits;  // of the voice named first
  std::shared_ptr<const VoicePack> pack;
};

// Thread-safe. The list is read at construction; a pack is read when it is first used.
class Voices {
 public:
  // Files NAME.pt, NAME.bin and archives of many voices (*.bin, *.npz). A name in several files comes from
  // the first of NAME.pt, NAME.bin, archives by name. An invalid file causes a log line, and an error when
  // its voice is requested. Throws Error(not_found): no such folder.
  explicit Voices(std::string dir);

  const std::string& dir() const { return dir_; }
  const std::vector<std::string>& names() const { return names_; }  // sorted
  bool contains(std::string_view name) const { return files_.find(name) != files_.end(); }

  // A name or a mix (voice_mix.h). Mixes are computed once while they are among the last kCachedPacks that
  // were asked for. Throws Error: invalid_argument, not_found; io, corrupt_file (the file has changed).
  Voice get(std::string_view expression) const;

  // The published default voice of a language, or else its first voice. Throws Error: invalid_argument (a
  // letter that is no language), not_found (no voice speaks it).
  std::string default_voice(char language) const;

  static constexpr size_t kCachedPacks = 64;  // of 510 KiB

 private:
  using Pack = std::shared_ptr<const VoicePack>;
  struct File {
    std::string path;
    VoiceFormat format = VoiceFormat::raw;
  };
  struct Cached {
    std::string key;
    Pack pack;
  };

  void add_file(const std::string& path);
  void add(const std::string& name, File file);
  VoiceMix parse(std::string_view expression) const;
  Pack cached(const std::string& key) const;
  Pack remember(const std::string& key, VoicePack pack) const;
  Pack single(const std::string& name) const;
  VoicePack mixed(const VoiceMix& mix) const;

  std::string dir_;
  std::map<std::string, File, std::less<>> files_;      // by name of the voice
  std::map<std::string, Error, std::less<>> unusable_;  // the error of each unusable file, by its stem
  std::vector<std::string> names_;

  // Guards the members below; held while a pack is read, which takes a millisecond.
  mutable std::mutex mutex_;
  mutable std::list<Cached> recent_;  // the last one used first
};

}  // namespace shoal::kokoro
