#include "runtime/families/language/speech_plan.h"

#include <algorithm>
#include <xxhash.h>

#include "runtime/engine/prosody.h"
#include "runtime/engine/request_text.h"
#include "runtime/engine/unused_fields.h"
#include "shoal/model.h"
#include "text/characters.h"
#include "text/normalise.h"
#include "text/scripts.h"
#include "text/sentences.h"
#include "text/utf8.h"

namespace shoal::runtime {
namespace {

text::ReferenceCodes view_of(const VoiceReference& reference) {
  return {.text = reference.text,
          .codes = reference.codes.data(),
          .frames = reference.frames,
          .speaker = reference.speaker};
}

std::vector<text::ReferenceCodes> views_of(std::span<const VoiceReference> references) {
  std::vector<text::ReferenceCodes> views;
  for (const VoiceReference& reference : references) views.push_back(view_of(reference));
  return views;
}

// The first utterance that became sound: what later ones follow.
std::span<const VoiceReference> first_voiced(std::span<const VoiceReference> spoken) {
  for (size_t i = 0; i < spoken.size(); ++i)
    if (spoken[i].frames > 0) return spoken.subspan(i, 1);
  return {};
}

int64_t frames_of(std::span<const VoiceReference> spoken) {
  int64_t frames = 0;
  for (const VoiceReference& utterance : spoken) frames += utterance.frames;
  return frames;
}

dual_ar::Sampling resolve_sampling(const SpeechRequest& request, const SpeechModel& model, uint64_t seed) {
  const GenerationDefaults& own = model.defaults();
  dual_ar::Sampling sampling = dual_ar::Sampling::defaults(model.language_model().config().family);
  const auto choose = [](auto& field, const auto& asked, const auto& model_own) {
    if (asked)
      field = *asked;
    else if (model_own)
      field = *model_own;
  };
  choose(sampling.temperature, request.temperature, own.temperature);
  choose(sampling.top_p, request.top_p, own.top_p);
  choose(sampling.repetition_penalty, request.repetition_penalty, own.repetition_penalty);
  sampling.top_k = request.top_k.value_or(sampling.top_k);
  sampling.seed = request.seed.value_or(seed);
  sampling.quirks = {.penalise_window_semantics = request.quirks.penalise_window_semantics,
                     .check_first_frame_end = request.quirks.check_first_frame_end,
                     .keep_last_frame_without_end = request.quirks.keep_last_frame_without_end,
                     .semantic_only = model.semantic_only()};
  return sampling;
}

// Whether the model would leave out words of pieces as long as was asked for (0: of any length).
bool is_too_long(int64_t chunk_length, const SpeechModel& model) {
  const std::optional<int> most = model.defaults().max_chunk_length;
  return most && (chunk_length == 0 || chunk_length > *most);
}

std::vector<std::string> split(const SpeechRequest& request, const SpeechModel& model) {
  const bool normalise = request.normalise.value_or(model.defaults().normalise);
  const bool s2 = model.language_model().config().family == dual_ar::Family::s2;
  const text::Brackets brackets = s2 ? text::Brackets::keep : text::Brackets::read;
  const std::string spoken = normalise ? text::normalise_english(request.text, brackets) : request.text;
  if (s2) {
    const std::vector<std::string> turns = text::split_s2_turns(spoken);
    if (!turns.empty())
      return text::group_s2_turns(turns, request.chunk_length == 0 ? kMaxTextBytes : request.chunk_length);
  }
  const bool too_long = is_too_long(request.chunk_length, model);
  if (request.chunk_length == 0 && !too_long) return {spoken};
  const auto bytes = too_long ? *model.defaults().max_chunk_length : request.chunk_length;
  std::vector<std::string> utterances;
  for (std::string& piece : text::split_utterances(spoken, bytes)) {
    if (text::is_speakable(piece)) utterances.push_back(std::move(piece));
  }
  return utterances;
}

// The utterances at the start of a dialogue that take at most `columns`, a byte of text counted as a column.
std::span<const VoiceReference> beginning_of(std::span<const VoiceReference> spoken, int64_t columns) {
  size_t count = 0;
  for (; count < spoken.size(); ++count) {
    columns -= spoken[count].frames + static_cast<int64_t>(spoken[count].text.size());
    if (columns < 0) break;
  }
  return spoken.first(count);
}

// S2: the whole dialogue is its history while it fits; beyond that its beginning, which carries the voices,
// up to half of the room, so that it stays the same from then on (and in the prefix cache).
text::PromptColumns build_s2(const SpeechPlan& plan, const SpeechModel& model,
                             std::span<const VoiceReference> spoken, std::string_view text, int64_t limit) {
  const dual_ar::Config& config = model.language_model().config();
  const int codebooks = static_cast<int>(config.num_codebooks);
  const auto with_history = [&](std::span<const VoiceReference> history) {
    return text::build_s2_prompt(model.tokenizer(), codebooks, views_of(plan.references), views_of(history),
                                 text, plan.special_tokens);
  };
  for (const auto history : {spoken, beginning_of(spoken, limit / 2)}) {
    if (frames_of(history) >= limit) continue;
    text::PromptColumns prompt = with_history(history);
    if (prompt.columns() <= limit) return prompt;
  }
  return with_history(first_voiced(spoken));
}

}  // namespace

std::vector<std::string> validate(const SpeechRequest& request) {
  UnusedFields unused(request);
  if (!request.phonemes.empty()) fail(ErrorCode::unsupported, "phonemes: this model reads text");
  check_prosody(request);
  if (!request.language.empty()) unused.add("language", "hears the language in the text");
  if (request.strict_phonemes) unused.add("strict_phonemes", "reads text");
  if (!request.trim_joins) unused.add("trim_joins", "trims no joins");
  validate_text(request.text);
  if (request.chunk_length != 0 && (request.chunk_length < 50 || request.chunk_length > 1000)) {
    fail(ErrorCode::invalid_argument, "chunk_length: expected 0 (never split) or 50 to 1000 bytes, got ",
         request.chunk_length);
  }
  if (request.max_new_tokens < 0 || request.max_new_tokens > (int64_t{1} << 20)) {
    fail(ErrorCode::invalid_argument,
         "max_new_tokens: expected 0 (up to the context limit) or more frames, got ", request.max_new_tokens);
  }
  if (request.timeout.count() < 0)
    fail(ErrorCode::invalid_argument, "timeout: expected 0 (the engine's) or more milliseconds, got ",
         request.timeout.count());
  if (!request.voice.empty() && !(request.references.empty() && request.encoded_references.empty()))
    fail(ErrorCode::invalid_argument, "voice: give a voice or reference clips, not both");
  dual_ar::Sampling sampling;
  sampling.temperature = request.temperature.value_or(sampling.temperature);
  sampling.top_p = request.top_p.value_or(sampling.top_p);
  sampling.repetition_penalty = request.repetition_penalty.value_or(sampling.repetition_penalty);
  sampling.top_k = request.top_k.value_or(sampling.top_k);
  dual_ar::check_sampling(sampling);
  return std::move(unused).take();
}

std::optional<std::string> remark_on_language(const SpeechRequest& request, const SpeechModel& model) {
  const std::vector<std::string>& languages = model.defaults().languages;
  const std::string_view script = text::foreign_script(request.text, languages);
  if (script.empty()) return std::nullopt;
  std::string list;
  for (const std::string& language : languages) list += concat(list.empty() ? "" : ", ", language);
  std::string remark = concat("text: most of its letters are ", script, ", but the model has learned only ",
                              list, "; expect noise instead of words");
  if (request.strict) fail(ErrorCode::unsupported, remark);
  return remark;
}

std::optional<std::string> remark_on_chunk_length(const SpeechRequest& request, const SpeechModel& model) {
  if (!is_too_long(request.chunk_length, model)) return std::nullopt;
  return concat("chunk_length: this model speaks at most ", *model.defaults().max_chunk_length,
                " bytes of text in one piece; longer ones were split");
}

SpeechPlan plan_speech(const SpeechRequest& request, const SpeechModel& model,
                       std::vector<VoiceReference> references, uint64_t seed) {
  return {.utterances = split(request, model),
          .references = std::move(references),
          .sampling = resolve_sampling(request, model, seed),
          .max_new_tokens = request.max_new_tokens,
          .special_tokens = request.special_tokens.value_or(true) ? text::SpecialTokens::recognise
                                                                  : text::SpecialTokens::as_text};
}

text::PromptColumns build_prompt(const SpeechPlan& plan, const SpeechModel& model,
                                 std::span<const VoiceReference> spoken, std::string_view text,
                                 int64_t room) {
  const dual_ar::Config& config = model.language_model().config();
  const int64_t limit = dual_ar::prompt_limit(config);
  const std::span<const VoiceReference> references =
      plan.references.empty() ? first_voiced(spoken) : std::span(plan.references);
  text::PromptColumns prompt =
      config.family == dual_ar::Family::s2
          ? build_s2(plan, model, spoken, text, std::min(limit, room))
          : text::build_s1_prompt(model.tokenizer(), static_cast<int>(config.num_codebooks),
                                  views_of(references), text, plan.special_tokens);
  if (prompt.columns() > limit) {
    fail(ErrorCode::too_large, "text: the prompt takes ", prompt.columns(),
         " columns with its references, at most ", limit,
         " leave room for speech; shorten the references or split the text (chunk_length)");
  }
  dual_ar::check_columns(config, prompt.values);
  return prompt;
}

uint64_t voice_of_prompt(const SpeechPlan& plan, std::span<const VoiceReference> spoken) {
  const std::span<const VoiceReference> references =
      plan.references.empty() ? first_voiced(spoken) : std::span(plan.references);
  uint64_t voice = 0;
  for (const VoiceReference& reference : references) {
    if (reference.speaker) voice += static_cast<uint64_t>(*reference.speaker) + 1;
    voice = XXH3_64bits_withSeed(reference.text.data(), reference.text.size(), voice);
    voice = XXH3_64bits_withSeed(reference.codes.data(), reference.codes.size() * sizeof(int32_t), voice);
  }
  return references.empty() ? 0 : std::max<uint64_t>(voice, 1);
}

}  // namespace shoal::runtime
