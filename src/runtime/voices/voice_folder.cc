#include "runtime/voices/voice_folder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "audio/clip.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/voice_name.h"
#include "runtime/voices/new_file.h"
#include "runtime/voices/reference_clip.h"

namespace shoal::runtime {
namespace {

namespace fs = std::filesystem;

// File endings of the official server. The content decides what a file is; an unreadable file is an error
// when the voice is used, not a clip that is silently missing.
constexpr std::array<std::string_view, 11> kAudioEndings = {".wav", ".flac", ".mp3", ".ogg", ".opus", ".aiff",
                                                            ".aif", ".aifc", ".m4a", ".aac", ".wma"};

// For messages: a hostile name must not control their size or bytes.
std::string shown(std::string_view name) {
  std::string text(name.substr(0, 60));
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return name.size() > 60 ? text + "..." : text;
}

bool is_audio(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return std::ranges::find(kAudioEndings, ending) != kAudioEndings.end();
}

fs::path transcript_of(fs::path clip) { return clip.replace_extension(".lab"); }

// The names in a folder; if it cannot be read completely, those that could be read.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) paths.push_back(entry->path());
  return paths;
}

// Clips with a transcript, in order of name. Hidden files are not clips (some systems leave "._clip.wav").
std::vector<fs::path> clips_in(const fs::path& folder) {
  std::vector<fs::path> clips;
  for (const fs::path& path : entries_of(folder)) {
    const bool usable = is_audio(path) && !path.filename().string().starts_with(".") &&
                        is_regular_file(path.string()) && is_regular_file(transcript_of(path).string());
    if (usable) clips.push_back(path);
  }
  std::ranges::sort(clips);
  return clips;
}

// The ending that fits the first bytes; decode_clip has accepted them. Old servers find every clip by ".wav".
std::string_view ending_of(std::string_view audio) {
  if (audio.starts_with("fLaC")) return ".flac";
  if (audio.starts_with("OggS")) return ".ogg";
  if (audio.starts_with("FORM")) return ".aiff";
  if (audio.starts_with("ID3") || audio.starts_with('\xFF')) return ".mp3";
  return ".wav";
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

[[noreturn]] void fail_not_found(std::string_view name, const std::string& dir) {
  fail(ErrorCode::not_found, "voice \"", name, "\": no clip with a .lab transcript in ", dir, "/", name);
}

std::string note_path(const std::string& folder) { return folder + "/shoal-note.json"; }

void check_note(const std::string& name, const std::string& note) {
  if (static_cast<int64_t>(note.size()) > kMaxVoiceNoteBytes)
    fail(ErrorCode::too_large, "voice \"", name, "\": expected a note of at most ", kMaxVoiceNoteBytes,
         " bytes, got ", note.size());
}

// When a file or folder was last changed; 0: unknown.
int64_t changed_at_s(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 ? int64_t{status.st_mtime} : 0;
}

// Gives a folder the name of a voice. An empty folder may hold the name: official servers leave one when they
// are asked for a voice that does not exist.
void rename_folder(const std::string& from, const std::string& dir, const std::string& name) {
  if (std::rename(from.c_str(), (dir + "/" + name).c_str()) == 0) return;
  if (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR)
    fail(ErrorCode::already_exists, "voice \"", name, "\": exists already");
  if (errno == ENOENT) fail(ErrorCode::not_found, from, ": no such folder");  // somebody was faster
  fail_with_errno(dir + "/" + name, "cannot be written");
}

// The folder that a path leads to now, or none. While it is open, no other gets its number.
class HeldFolder {
 public:
  explicit HeldFolder(const std::string& path)
      : fd_(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), exists_(fstat(fd_, &status_) == 0) {}
  ~HeldFolder() {
    if (fd_ >= 0) close(fd_);
  }
  HeldFolder(const HeldFolder&) = delete;
  HeldFolder& operator=(const HeldFolder&) = delete;

  bool is(const HeldFolder& other) const {
    return exists_ == other.exists_ && status_.st_dev == other.status_.st_dev &&
           status_.st_ino == other.status_.st_ino;
  }

 private:
  int fd_;
  struct stat status_{};
  bool exists_;
};

bool is_symlink(const std::string& path) {
  struct stat status{};
  return lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
}

}  // namespace

bool VoiceFolder::has(std::string_view name) const {
  return is_voice_name(name) && !clips_in(fs::path(dir_) / name).empty();
}

std::vector<std::string> VoiceFolder::names() const {
  std::vector<std::string> names;
  for (const fs::path& path : entries_of(dir_)) {
    const std::string name = path.filename().string();
    if (has(name)) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

std::vector<VoiceInfo> VoiceFolder::list() const {
  std::vector<VoiceInfo> voices;
  for (const std::string& name : names()) {
    try {
      voices.push_back(get(name));
    } catch (const Error& error) {  // one bad voice does not hide the others
      if (error.code() != ErrorCode::not_found) log(LogLevel::warning, error.message());
    }
  }
  return voices;
}

VoiceInfo VoiceFolder::get(const std::string& name) const {
  VoiceInfo info{.name = name, .clips = 0, .transcripts = {}};
  for (VoiceClip& clip : clips(name)) {
    if (info.transcripts.empty()) info.added_at_s = changed_at_s(clip.audio_path);
    info.transcripts.push_back(std::move(clip.transcript));
  }
  info.changed_at_s = changed_at_s(concat(dir_, "/", name));
  info.clips = static_cast<int64_t>(info.transcripts.size());
  return info;
}

std::vector<VoiceClip> VoiceFolder::clips(std::string_view name) const {
  check_voice_name(name);
  const ReferenceLimits limits;
  std::vector<VoiceClip> clips;
  for (const fs::path& clip : clips_in(fs::path(dir_) / name)) {
    const std::string words = transcript_of(clip).string();
    clips.push_back({clip.string(), read_file(words, limits.max_transcript_bytes)});
    check_transcript(clips.back().transcript, words, limits);
  }
  if (clips.empty()) fail_not_found(name, dir_);
  return clips;
}

void VoiceFolder::look_at(std::string_view name, FunctionRef<void()> look) const {
  check_voice_name(name);
  constexpr int kMostTries = 100;
  const std::string path = concat(dir_, "/", name);
  for (int i = 0; i < kMostTries; ++i) {
    const HeldFolder before(path);
    try {
      look();
      if (HeldFolder(path).is(before)) return;
    } catch (const Error&) {
      if (HeldFolder(path).is(before)) throw;
    }
  }
  fail(ErrorCode::unavailable, "voice \"", name, "\": is replaced again and again");
}

void VoiceFolder::create(const std::string& name, const NewVoice& voice) {
  check_voice_name(name);
  check_note(name, voice.note);
  const ReferenceLimits limits;
  const std::string where = concat("voice \"", name, "\"");
  const size_t clips = voice.clips.size();
  if (clips == 0 || clips > kMostVoiceClips)
    fail(ErrorCode::invalid_argument, where, ": expected 1 to ", kMostVoiceClips, " clips, got ", clips);
  for (const ReferenceClip& clip : voice.clips) check_transcript(clip.text, where, limits);  // cheap
  for (const ReferenceClip& clip : voice.clips) {
    check_reference(audio::decode_clip(bytes_of(clip.audio), where, {.max_seconds = limits.max_seconds}),
                    clip.text, where, limits);
  }
  std::error_code error;
  fs::create_directories(dir_, error);  // a failure shows in the next line
  NewFolder folder(dir_);
  for (size_t i = 0; i < clips; ++i) {
    const std::string file =
        concat(folder.path(), "/sample", clips == 1 ? "" : std::to_string(kMostVoiceClips + i));
    const ReferenceClip& clip = voice.clips[i];
    write_new_file(concat(file, ending_of(clip.audio)), bytes_of(clip.audio), NewFile::kept);
    write_new_file(file + ".lab", bytes_of(clip.text), NewFile::kept);
  }
  if (!voice.note.empty()) write_new_file(note_path(folder.path()), bytes_of(voice.note), NewFile::kept);
  sync_folder(folder.path());
  rename_folder(folder.path(), dir_, name);
  folder.keep();
  sync_folder(dir_);
}

std::string VoiceFolder::note(const std::string& name) const {
  check_voice_name(name);
  const std::string folder = dir_ + "/" + name;
  if (clips_in(folder).empty()) fail_not_found(name, dir_);
  try {
    return read_file(note_path(folder), kMaxVoiceNoteBytes);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_found) return "";
    throw;
  }
}

void VoiceFolder::set_note(const std::string& name, const std::string& note) {
  check_voice_name(name);
  check_note(name, note);
  const std::string folder = dir_ + "/" + name;
  if (clips_in(folder).empty()) fail_not_found(name, dir_);
  if (is_symlink(folder)) {  // its owner chose another place
    fail(ErrorCode::invalid_argument, "voice \"", name, "\": expected a folder, got a symbolic link (",
         folder, "); change the note in the folder that it leads to");
  }
  const std::string fresh = concat(folder, "/", temporary_name());
  try {
    write_new_file(fresh, bytes_of(note), NewFile::kept);
  } catch (const Error&) {
    if (!is_directory(folder)) fail_not_found(name, dir_);  // it has been removed or renamed meanwhile
    throw;
  }
  if (std::rename(fresh.c_str(), note_path(folder).c_str()) != 0) {
    const int why = errno;
    std::remove(fresh.c_str());
    if (why == ENOENT) fail_not_found(name, dir_);
    errno = why;
    fail_with_errno(note_path(folder), "cannot be written");
  }
  sync_folder(folder);
}

void VoiceFolder::rename(const std::string& name, const std::string& new_name) {
  check_voice_name(name);
  check_voice_name(new_name);
  const std::string from = dir_ + "/" + name;
  if (clips_in(from).empty()) fail_not_found(name, dir_);
  if (name == new_name) fail(ErrorCode::already_exists, "voice \"", name, "\": exists already");
  if (is_symlink(from)) {  // rename(2) would replace any existing file of the new name
    fail(ErrorCode::invalid_argument, "voice \"", name, "\": expected a folder, got a symbolic link (", from,
         "); rename the link itself");
  }
  rename_folder(from, dir_, new_name);
  sync_folder(dir_);
}

void VoiceFolder::remove(const std::string& name) {
  check_voice_name(name);
  const std::string from = dir_ + "/" + name;
  if (clips_in(from).empty()) fail_not_found(name, dir_);  // not a voice: not ours to delete
  const std::string away = dir_ + "/" + temporary_name();
  if (std::rename(from.c_str(), away.c_str()) != 0) {
    if (errno == ENOENT) fail_not_found(name, dir_);
    fail_with_errno(from, "cannot be removed");
  }
  std::error_code error;
  fs::remove_all(away, error);  // for a symbolic link, only the link
  if (error) log(LogLevel::warning, away, ": left behind: ", error.message());
  sync_folder(dir_);
}

}  // namespace shoal::runtime

void shoal::check_voice_name(std::string_view name) {
  if (is_voice_name(name)) return;
  fail(ErrorCode::invalid_argument, "voice \"", runtime::shown(name), "\": expected 1 to ",
       kMaxVoiceNameBytes, " letters, digits, '-', '_' or ' '");
}
