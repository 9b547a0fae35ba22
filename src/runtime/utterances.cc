#include "runtime/utterances.h"

#include "text/normalise.h"
#include "text/sentences.h"

namespace shoal::runtime {
namespace {

text::ReferenceCodes view_of(const VoiceReference& reference) {
  return {.text = reference.text, .codes = reference.codes.data(), .frames = reference.frames};
}

std::vector<text::ReferenceCodes> views_of(std::span<const VoiceReference> references) {
  std::vector<text::ReferenceCodes> views;
  for (const VoiceReference& reference : references) views.push_back(view_of(reference));
  return views;
}

// The first utterance that became sound: what later ones follow.
std::vector<text::ReferenceCodes> first_voiced(std::span<const VoiceReference> spoken) {
  for (const VoiceReference& utterance : spoken) {
    if (utterance.frames > 0) return {view_of(utterance)};
  }
  return {};
}

int64_t frames_of(std::span<const VoiceReference> spoken) {
  int64_t frames = 0;
  for (const VoiceReference& utterance : spoken) frames += utterance.frames;
  return frames;
}

}  // namespace

std::vector<std::string> plan_utterances(const SpeechRequest& request, const SpeechModel& model) {
  const std::string spoken = request.normalise ? text::normalise_english(request.text) : request.text;
  if (model.language_model().config().family == dual_ar::Family::s2) {
    const std::vector<std::string> turns = text::split_s2_turns(spoken);
    if (!turns.empty())
      return text::group_s2_turns(turns, request.chunk_length == 0 ? kMaxTextBytes : request.chunk_length);
  }
  if (request.chunk_length == 0) return {spoken};
  std::vector<std::string> utterances;
  for (std::string& piece : text::split_utterances(spoken, request.chunk_length)) {
    if (text::is_speakable(piece)) utterances.push_back(std::move(piece));
  }
  return utterances;
}

text::PromptColumns build_prompt(const SpeechRequest& request, const SpeechModel& model,
                                 std::span<const VoiceReference> spoken, std::string_view text) {
  const dual_ar::Config& config = model.language_model().config();
  const int codebooks = static_cast<int>(config.num_codebooks);
  const std::vector<text::ReferenceCodes> references = views_of(request.references);
  const std::vector<text::ReferenceCodes> first = first_voiced(spoken);
  if (config.family == dual_ar::Family::s2) {
    // The whole dialogue is its history while it fits; beyond that the first turn, which carries the voice,
    // and nothing between.
    const int64_t limit = dual_ar::prompt_limit(config);
    if (frames_of(spoken) < limit) {
      const std::vector<text::ReferenceCodes> history = views_of(spoken);
      text::PromptColumns prompt = text::build_s2_prompt(model.tokenizer(), codebooks, references, history,
                                                         text, request.special_tokens);
      if (prompt.columns() <= limit) return prompt;
    }
    return text::build_s2_prompt(model.tokenizer(), codebooks, references, first, text,
                                 request.special_tokens);
  }
  return text::build_s1_prompt(model.tokenizer(), codebooks, references.empty() ? first : references, text,
                               request.special_tokens);
}

void append_speech(const dual_ar::Utterance& utterance, VoiceReference& spoken) {
  const int64_t width = static_cast<int64_t>(utterance.last_frame().size());
  for (; spoken.frames < utterance.speech_frames(); ++spoken.frames) {
    const auto frame =
        utterance.frames().subspan(static_cast<size_t>(spoken.frames * width), static_cast<size_t>(width));
    spoken.codes.insert(spoken.codes.end(), frame.begin() + 1, frame.end());
  }
}

}  // namespace shoal::runtime
