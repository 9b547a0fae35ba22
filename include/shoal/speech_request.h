// A request for speech.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal {

// A recording of a voice to follow.
struct ReferenceClip {
  std::string audio;  // bytes of a wav, flac, ogg, mp3 or aiff file
  std::string text;   // the words spoken in it, UTF-8, used verbatim
  // Whose voice it is, of the turns in the text (ModelTraits::speakers); absent: of the first clip speaker 0,
  // of the second 1, ..., as the official code has it. With a number for one clip all need one.
  std::optional<int> speaker = {};
};

// A clip in the model's own codes (Engine::encode gives them): a reference that costs no encoding.
struct ReferenceCodes {
  std::vector<int32_t> codes;  // [frames, codebooks]
  std::string text;
  std::optional<int> speaker = {};  // as in ReferenceClip
};

// The voice of the turns "<|speaker:N|>..." of a text.
struct SpeakerVoice {
  int speaker = 0;
  std::string voice;  // as SpeechRequest::voice
};
// "0=clara", and "0=clara,1=hugo". Throws Error(invalid_argument).
SpeakerVoice parse_speaker_voice(std::string_view text);
std::vector<SpeakerVoice> parse_speaker_voices(std::string_view text);

// Deviations from the official sampling; all false: the same as the official code (dual_ar/MODEL.md).
struct Quirks {
  bool penalise_window_semantics = false;
  bool check_first_frame_end = false;
  bool keep_last_frame_without_end = false;
};

enum class Delivery {
  streaming,  // pieces as soon as they can be heard
  whole,      // for a file: large pieces, no hurry
};

// One request type for every model (ModelTraits says what a model understands). Fields that a model ignores,
// and texts that it is not known to speak well, are reported in SpeechSummary::warnings, or refused by name
// with Error(unsupported) if `strict`. Requests that would sound like something else entirely (phonemes or
// special tokens, clips to follow) are always refused.
struct SpeechRequest {
  std::string text;  // UTF-8, at most 256 KiB
  // A named voice; empty: `references`, or without them the model's own choice. An unknown name is an error.
  // Models with voices of their own also take mixes: "af_bella(2)+af_sky(1)", "af_bella,af_sky".
  std::string voice;
  std::vector<ReferenceClip> references;
  std::vector<ReferenceCodes> encoded_references;  // placed after `references`
  // Instead of `voice` and `references`, for a text of several speakers (ModelTraits::speakers): the voice of
  // each. Every speaker of the text needs one.
  std::vector<SpeakerVoice> voices;

  // Absent: the model's own (its generation_config.json, then its family's defaults).
  std::optional<float> temperature;         // 0 to 2
  std::optional<float> top_p;               // 0 to 1; 0 is greedy
  std::optional<float> repetition_penalty;  // over 0, at most 2
  std::optional<int> top_k;                 // 0: no limit
  std::optional<bool> normalise;            // speak English numbers, dates, money, units as words
  std::optional<uint64_t> seed;             // absent: drawn; SpeechSummary says which
  int64_t max_new_tokens = 1024;            // frames of one utterance; 0: up to the context limit
  int chunk_length = 200;                   // longest utterance in bytes; 0: never split
  std::optional<bool> special_tokens;       // spellings like <|im_end|> are control tokens; absent: they are
  Quirks quirks;

  // 0.25 to 4: 2 is twice as fast. Models of phonemes speak so; of others the sound is stretched, its pitch
  // kept (to 16 bits).
  double speed = 1;
  float volume = 1;  // 0 to 10: factor of the samples; samples beyond full scale are clipped

  // Of models that speak phonemes (ModelTraits::phonemes).
  std::string phonemes;  // instead of the text: in the model's alphabet, lines and pauses as in a text
  // Language of the text: "a", "en-us", "fr-fr", ...; empty: the engine's default_language, then that of the
  // voice.
  std::string language;
  bool strict_phonemes = false;  // phonemes that the model lacks are an error; otherwise a warning
  bool trim_joins = true;        // long silence between the chunks of a text is cut to a natural pause

  bool strict = false;
  // Options of the caller's own API that no model has, each "name: why": reported or refused like unused
  // fields.
  std::vector<std::string> unused;

  Delivery delivery = Delivery::streaming;
  // Limit for the whole request; a stream does not count the time in which sound waits unread. 0:
  // request_timeout_s.
  std::chrono::milliseconds timeout{0};
  // Whose request it is: clients share the engine evenly. Requests without one are all of one client.
  std::string client;
};

}  // namespace shoal
