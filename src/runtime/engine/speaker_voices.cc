#include "runtime/engine/speaker_voices.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/error.h"
#include "base/printable.h"
#include "text/characters.h"
#include "text/sentences.h"
#include "text/speaker_tags.h"

namespace shoal {
namespace {

constexpr int kMostSpeaker = 999;
constexpr size_t kMostVoices = 16;

}  // namespace

SpeakerVoice parse_speaker_voice(std::string_view text) {
  const size_t equals = text.find('=');
  const std::string_view digits = text.substr(0, equals);
  SpeakerVoice parsed;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), parsed.speaker);
  if (equals == std::string_view::npos || digits.empty() || error != std::errc{} ||
      end != digits.data() + digits.size() || parsed.speaker < 0)
    fail(ErrorCode::invalid_argument, "expected NUMBER=VOICE, as in 0=clara, got \"", printable(text), "\"");
  parsed.voice = text.substr(equals + 1);
  return parsed;
}

std::vector<SpeakerVoice> parse_speaker_voices(std::string_view text) {
  std::vector<SpeakerVoice> voices;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    voices.push_back(parse_speaker_voice(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return voices;
}

namespace runtime {
namespace {

void check_number(const char* field, int speaker) {
  if (speaker < 0 || speaker > kMostSpeaker)
    fail(ErrorCode::invalid_argument, field, ": expected speakers 0 to ", kMostSpeaker, ", got ", speaker);
}

// Every clip has a number, or none. Returns whether they have.
bool check_clips(const SpeechRequest& request) {
  size_t numbered = 0;
  const auto look = [&](const auto& clips) {
    for (const auto& clip : clips) {
      if (!clip.speaker) continue;
      check_number("references", *clip.speaker);
      ++numbered;
    }
  };
  look(request.references);
  look(request.encoded_references);
  if (numbered > 0 && numbered != request.references.size() + request.encoded_references.size())
    fail(ErrorCode::invalid_argument, "references: say of all clips which speaker they are of, or of none");
  return numbered > 0;
}

}  // namespace

void check_speakers(const SpeechRequest& request, const ModelTraits& traits) {
  const bool numbered = check_clips(request);
  if (request.voices.empty() && !numbered) return;
  const char* field = numbered ? "references" : "voices";
  if (!traits.speakers)
    fail(ErrorCode::unsupported, field, ": this model speaks a text in one voice; ",
         numbered ? "send clips of that voice alone" : "give `voice`, and send a text for each speaker");
  if (!request.voices.empty() &&
      (!request.voice.empty() || !request.references.empty() || !request.encoded_references.empty()))
    fail(ErrorCode::invalid_argument, "voices: give voices by speaker, or a voice, or clips: one of them");
  if (request.voices.size() > kMostVoices)
    fail(ErrorCode::invalid_argument, "voices: at most ", kMostVoices, " speakers may have one, got ",
         request.voices.size());
  std::set<int> known;
  for (const SpeakerVoice& voice : request.voices) {
    check_number("voices", voice.speaker);
    if (!known.insert(voice.speaker).second)
      fail(ErrorCode::invalid_argument, "voices: speaker ", voice.speaker, " has more than one");
  }
  for (const ReferenceClip& clip : request.references) known.insert(clip.speaker.value_or(0));
  for (const ReferenceCodes& clip : request.encoded_references) known.insert(clip.speaker.value_or(0));
  for (const int speaker : text::speakers_of(request.text))
    if (!known.contains(speaker))
      fail(ErrorCode::invalid_argument, field,
           ": expected one for each speaker of the text, got none for <|speaker:", speaker, "|>");
}

std::optional<std::string> remark_on_speakers(const SpeechRequest& request,
                                              std::span<const VoiceReference> references) {
  const auto first = text::find_speaker_tag(request.text);
  if (!first) return std::nullopt;
  std::string remark;
  if (text::is_speakable(request.text.substr(0, first->begin)))
    remark = "text: what stands before the first <|speaker:...|> is not spoken";
  if (!request.voices.empty() || references.empty())
    return remark.empty() ? std::nullopt : std::optional(remark);
  std::set<int> known;
  for (size_t i = 0; i < references.size(); ++i) {
    const std::vector<int> own = text::speakers_of(references[i].text);
    known.insert(own.begin(), own.end());
    if (own.empty()) known.insert(references[i].speaker.value_or(static_cast<int>(i)));
  }
  for (const int speaker : text::speakers_of(request.text)) {
    if (known.contains(speaker)) continue;
    remark += concat(remark.empty() ? "text: " : "; ", "speaker ", speaker,
                     " has no reference: the model chooses a voice (give `voices`, or a clip for each)");
    break;
  }
  return remark.empty() ? std::nullopt : std::optional(remark);
}

}  // namespace runtime
}  // namespace shoal
