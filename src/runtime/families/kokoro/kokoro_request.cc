#include "runtime/families/kokoro/kokoro_request.h"

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"
#include "runtime/engine/prosody.h"
#include "runtime/engine/request_text.h"
#include "runtime/engine/unused_fields.h"
#include "shoal/model.h"
#include "text/utf8.h"

namespace shoal::runtime {
namespace {

constexpr const char* kNoSampling = "draws no tokens; only the seed changes its sound";

// What would be heard as something else.
void refuse_what_others_have(const SpeechRequest& request) {
  const auto check = [](bool is_usual, const char* field, const char* why) {
    if (!is_usual) fail(ErrorCode::unsupported, field, ": this model ", why);
  };
  check(request.references.empty() && request.encoded_references.empty(), "references",
        "has voices of its own and follows no clips");
  check(request.voices.empty(), "voices", "speaks a text in one voice; give `voice`, or a mix of voices");
  check(!request.special_tokens.value_or(false), "special_tokens", "reads no tokens in a text");
  check(!request.quirks.penalise_window_semantics && !request.quirks.check_first_frame_end &&
            !request.quirks.keep_last_frame_without_end,
        "quirks", kNoSampling);
}

std::vector<std::string> remarks_on_what_others_have(const SpeechRequest& request) {
  const SpeechRequest usual;
  UnusedFields unused(request);
  const auto check = [&](bool is_usual, const char* field, const char* why) {
    if (!is_usual) unused.add(field, why);
  };
  check(!request.temperature, "temperature", kNoSampling);
  check(!request.top_p, "top_p", kNoSampling);
  check(!request.repetition_penalty, "repetition_penalty", kNoSampling);
  check(!request.top_k, "top_k", kNoSampling);
  check(request.max_new_tokens == usual.max_new_tokens, "max_new_tokens",
        "speaks a chunk as long as its phonemes take");
  check(request.chunk_length == usual.chunk_length, "chunk_length", "cuts texts by their phonemes");
  return std::move(unused).take();
}

void check_size(const char* field, const std::string& text) {
  if (text.size() > static_cast<size_t>(kMaxTextBytes))
    fail(ErrorCode::too_large, field, ": ", text.size(), " bytes, at most ", kMaxTextBytes, " are accepted");
  if (const size_t bad = text::find_invalid_utf8(text); bad != std::string_view::npos)
    fail(ErrorCode::invalid_argument, field, ": not valid UTF-8 (byte ", bad, ")");
}

// The letter of a language that need not have a front end.
char letter_of_language(const std::string& language, bool with_text) {
  if (!with_text) {
    for (const char letter : {'j', 'z'})
      if (language == std::string(1, letter) || language == language_alias(letter)) return letter;
  }
  return phonemes::letter_of(phonemes::parse_language(language));
}

std::string default_voice_of(const std::string& language, bool with_text, const EngineConfig& config,
                             const KokoroModel& model) {
  const std::string wanted = language.empty() ? config.default_language : language;
  const char letter = wanted.empty() ? 'a' : letter_of_language(wanted, with_text);
  if (!config.default_voice.empty()) {
    const auto traits = model.voice(config.default_voice).traits;
    if (language.empty() || (traits && traits->language == letter)) return config.default_voice;
  }
  try {
    return model.default_voice(letter);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found || !wanted.empty()) throw;
    return model.names().front();
  }
}

phonemes::Language language_of(const SpeechRequest& request, const EngineConfig& config,
                               const std::string& voice_name, const kokoro::Voice& voice) {
  if (!request.language.empty()) return phonemes::parse_language(request.language);
  if (!config.default_language.empty()) return phonemes::parse_language(config.default_language);
  if (!voice.traits)
    fail(ErrorCode::invalid_argument, "language: the name of voice \"", printable(voice_name),
         "\" does not say which one it speaks; give it (en-us, en-gb, es, fr-fr, hi, it, pt-br)");
  return phonemes::parse_language(std::string(1, voice.traits->language));
}

}  // namespace

ModelTraits kokoro_traits() {
  return {.family = "kokoro", .phonemes = true, .own_voices = true, .references = false};
}

std::vector<std::string> validate_kokoro(const SpeechRequest& request) {
  if (!request.text.empty() && !request.phonemes.empty())
    fail(ErrorCode::invalid_argument, "phonemes: give a text or phonemes, not both");
  check_size("phonemes", request.phonemes);
  if (request.phonemes.empty()) validate_text(request.text);
  check_prosody(request);
  if (request.timeout.count() < 0)
    fail(ErrorCode::invalid_argument, "timeout: expected 0 (the engine's) or more milliseconds, got ",
         request.timeout.count());
  refuse_what_others_have(request);
  return remarks_on_what_others_have(request);
}

Speaker choose_speaker(const SpeechRequest& request, const EngineConfig& config, const KokoroModel& model) {
  const bool with_text = request.phonemes.empty();
  const char asked = request.language.empty() ? 0 : letter_of_language(request.language, with_text);
  const std::string name =
      request.voice.empty() ? default_voice_of(request.language, with_text, config, model) : request.voice;
  Speaker speaker{.voice = model.voice(name)};
  if (with_text) speaker.language = language_of(request, config, name, speaker.voice);
  const char spoken = speaker.language ? phonemes::letter_of(*speaker.language) : asked;
  if (spoken != 0 && speaker.voice.traits && speaker.voice.traits->language != spoken)
    speaker.warnings.push_back(concat("voice \"", printable(name), "\" is of another language (",
                                      language_alias(speaker.voice.traits->language), ") than what it says (",
                                      language_alias(spoken), ")"));
  return speaker;
}

std::vector<phonemes::Line> lines_of(const SpeechRequest& request) {
  if (!request.phonemes.empty()) {
    std::vector<phonemes::Line> lines = phonemes::split_lines(request.phonemes);
    if (lines.empty()) fail(ErrorCode::invalid_argument, "phonemes: expected at least one, got only spaces");
    return lines;
  }
  std::vector<phonemes::Line> lines = phonemes::split_short_lines(request.text);
  CHECK(!lines.empty(), "a text with letters has a line");
  for (const phonemes::Line& line : lines) phonemes::split_links(phonemes::clean(line.text));
  return lines;
}

phonemes::ChunkRules chunk_rules(const EngineConfig& config, const KokoroModel& model) {
  phonemes::ChunkRules rules;
  rules.max_phonemes = std::min(rules.max_phonemes, model.most_phonemes());
  rules.second_phonemes = std::min(rules.second_phonemes, rules.max_phonemes);
  rules.first_words = config.first_chunk_words;
  return rules;
}

}  // namespace shoal::runtime
