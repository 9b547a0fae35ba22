#include "runtime/references.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "audio/resample.h"
#include "base/file.h"

namespace shoal::runtime {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxIdLength = 255;
constexpr int64_t kMaxTranscriptBytes = 64 << 10;
constexpr std::array<std::string_view, 8> kAudioEndings = {".wav",  ".flac", ".mp3", ".ogg",
                                                           ".opus", ".aiff", ".aif", ".aifc"};

bool is_voice_id(std::string_view id) {
  const auto allowed = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == ' '; };
  return !id.empty() && id.size() <= kMaxIdLength && std::all_of(id.begin(), id.end(), allowed);
}

bool is_audio(const fs::path& path) {
  return std::find(kAudioEndings.begin(), kAudioEndings.end(), path.extension().string()) !=
         kAudioEndings.end();
}

fs::path transcript_of(fs::path clip) { return clip.replace_extension(".lab"); }

// Clips with a transcript, sorted by name. A folder that cannot be read has none.
std::vector<fs::path> clips_in(const fs::path& folder) {
  std::vector<fs::path> clips;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const bool usable = is_audio(entry.path()) && is_regular_file(entry.path().string()) &&
                        is_regular_file(transcript_of(entry.path()).string());
    if (usable) clips.push_back(entry.path());
  }
  std::sort(clips.begin(), clips.end());
  return clips;
}

}  // namespace

void check_reference(const audio::Clip& clip, std::string_view text, std::string_view name,
                     const ReferenceLimits& limits) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    fail(ErrorCode::invalid_argument, name,
         ": its transcript is empty; give the words that are spoken in it");
  }
  if (clip.seconds() > limits.max_seconds) {
    fail(ErrorCode::too_large, name, ": lasts ", clip.seconds(), " s, at most ", limits.max_seconds,
         " s are accepted");
  }
  if (clip.seconds() < limits.min_seconds) {
    fail(ErrorCode::invalid_argument, name, ": lasts ", clip.seconds(), " s, at least ", limits.min_seconds,
         " s are needed");
  }
  if (audio::is_silent(clip.samples)) fail(ErrorCode::invalid_argument, name, ": is silence");
}

VoiceReference encode_reference(const SpeechModel& model, const audio::Clip& clip, std::string text,
                                std::string_view name, ops::Context& ctx, const ReferenceLimits& limits) {
  check_reference(clip, text, name, limits);
  const dac::Codec& codec = model.codec();
  const std::vector<float> samples =
      audio::resample(clip.samples, clip.sample_rate_hz, codec.config().sample_rate_hz);
  VoiceReference reference{.text = std::move(text), .codes = codec.encode(ctx, samples), .frames = 0};
  reference.frames = static_cast<int64_t>(reference.codes.size()) / codec.config().num_codebooks();
  return reference;
}

std::vector<NamedClip> find_voice(const std::string& references_dir, std::string_view id) {
  if (!is_voice_id(id)) {
    fail(ErrorCode::invalid_argument, "voice \"", id, "\": expected 1 to ", kMaxIdLength,
         " letters, digits, '-', '_' or ' '");
  }
  const fs::path folder = fs::path(references_dir) / id;
  std::vector<NamedClip> clips;
  for (const fs::path& clip : clips_in(folder)) {
    clips.push_back({clip.string(), read_file(transcript_of(clip).string(), kMaxTranscriptBytes)});
  }
  if (clips.empty()) {
    fail(ErrorCode::not_found, "voice \"", id, "\": no clip with a .lab transcript in ", folder.string(),
         "; `shoal voices` lists what there is");
  }
  return clips;
}

std::vector<std::string> list_voices(const std::string& references_dir) {
  std::vector<std::string> ids;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(references_dir, ignored)) {
    const std::string id = entry.path().filename().string();
    if (is_directory(entry.path().string()) && is_voice_id(id) && !clips_in(entry.path()).empty())
      ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace shoal::runtime
