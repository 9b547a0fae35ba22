#include "text/prompt.h"

#include <optional>

#include "base/error.h"
#include "text/characters.h"
#include "text/speaker_tags.h"

namespace shoal::text {
namespace {

// Appends parts one after another; each text part is encoded by itself, so that no token crosses a boundary.
class PromptWriter {
 public:
  PromptWriter(const Tokenizer& tokenizer, int num_codebooks) : tokenizer_(tokenizer) {
    CHECK(num_codebooks >= 1, "num_codebooks ", num_codebooks);
    prompt_.num_codebooks = num_codebooks;
  }

  void text(std::string_view part, SpecialTokens specials) {
    const std::vector<int32_t> ids = tokenizer_.encode(part, specials);
    const size_t stride = static_cast<size_t>(prompt_.num_codebooks) + 1;
    prompt_.values.reserve(prompt_.values.size() + ids.size() * stride);
    for (const int32_t id : ids) {
      prompt_.values.push_back(id);
      prompt_.values.insert(prompt_.values.end(), stride - 1, 0);
    }
  }

  // A part of the layout itself.
  void layout(std::string_view part) { text(part, SpecialTokens::recognise); }

  void codes(const ReferenceCodes& speech) {
    const int64_t codebooks = prompt_.num_codebooks;
    const int32_t last_code = tokenizer_.semantic_end() - tokenizer_.semantic_begin();
    for (int64_t frame = 0; frame < speech.frames; ++frame) {
      const int32_t* c = speech.codes + frame * codebooks;
      for (int64_t i = 0; i < codebooks; ++i) {
        if (c[i] < 0 || (i == 0 && c[i] > last_code))
          fail(ErrorCode::invalid_argument, "reference codes: frame ", frame, ", codebook ", i, ": code ",
               c[i], i == 0 ? concat(", expected 0 to ", last_code) : std::string(", expected 0 or more"));
      }
      prompt_.values.push_back(tokenizer_.semantic_begin() + c[0]);
      prompt_.values.insert(prompt_.values.end(), c, c + codebooks);
    }
  }

  PromptColumns take() { return std::move(prompt_); }

 private:
  const Tokenizer& tokenizer_;
  PromptColumns prompt_;
};

void require_special(const Tokenizer& tokenizer, std::string_view spelling) {
  if (!tokenizer.special_id(spelling))
    fail(ErrorCode::unsupported, "tokenizer: special token \"", spelling,
         "\", needed by the prompt, is missing");
}

// The texts of the references, one a line, each under a speaker tag.
std::string tagged_texts(std::span<const ReferenceCodes> references) {
  std::string joined;
  for (size_t i = 0; i < references.size(); ++i) {
    const ReferenceCodes& reference = references[i];
    if (i > 0) joined += '\n';
    if (!find_speaker_tag(reference.text))
      joined += concat("<|speaker:", reference.speaker.value_or(static_cast<int>(i)), "|>");
    joined += reference.text;
  }
  return joined;
}

}  // namespace

PromptColumns build_s1_prompt(const Tokenizer& tokenizer, int num_codebooks,
                              std::span<const ReferenceCodes> references, std::string_view text,
                              SpecialTokens specials) {
  constexpr std::string_view kSpeaker = "<|speaker:0|>";  // ordinary text, always index 0
  require_special(tokenizer, "<|interleave|>");
  PromptWriter prompt(tokenizer, num_codebooks);
  prompt.layout("<|interleave|>");
  for (const ReferenceCodes& reference : references) {
    prompt.layout(kSpeaker);
    prompt.text(reference.text, specials);
    prompt.codes(reference);
    prompt.layout("<|im_end|>");
  }
  prompt.layout(kSpeaker);
  prompt.text(text, specials);
  return prompt.take();
}

PromptColumns build_s2_prompt(const Tokenizer& tokenizer, int num_codebooks,
                              std::span<const ReferenceCodes> references,
                              std::span<const ReferenceCodes> history, std::string_view text,
                              SpecialTokens specials) {
  constexpr std::string_view kEndOfMessage = "<|im_end|>\n";
  require_special(tokenizer, "<|im_start|>");
  require_special(tokenizer, "<|voice|>");
  PromptWriter prompt(tokenizer, num_codebooks);

  prompt.layout("<|im_start|>system\n");
  if (references.empty()) {
    prompt.layout("convert the provided text to speech");
  } else {
    prompt.layout("convert the provided text to speech reference to the following:\n\nText:\n");
    prompt.text(tagged_texts(references), specials);
    prompt.layout("\n\nSpeech:\n");
    for (const ReferenceCodes& reference : references) prompt.codes(reference);
  }
  prompt.layout(kEndOfMessage);

  const auto ask = [&](std::string_view words) {
    prompt.layout("<|im_start|>user\n");
    prompt.text(words, specials);
    prompt.layout(kEndOfMessage);
    prompt.layout("<|im_start|>assistant\n<|voice|>");
  };
  for (const ReferenceCodes& turn : history) {
    ask(turn.text);
    prompt.codes(turn);
    prompt.layout(kEndOfMessage);
  }
  ask(text);
  return prompt.take();
}

std::vector<std::string> split_s2_turns(std::string_view text) {
  std::vector<std::string> turns;
  std::optional<SpeakerTag> tag = find_speaker_tag(text);
  while (tag) {
    const std::optional<SpeakerTag> next = find_speaker_tag(text, tag->end);
    const size_t end = next ? next->begin : text.size();
    turns.emplace_back(strip_white_space(text.substr(tag->begin, end - tag->begin)));
    tag = next;
  }
  return turns;
}

std::vector<std::string> group_s2_turns(std::span<const std::string> turns, int64_t max_bytes,
                                        int max_turns) {
  std::vector<std::string> groups;
  int64_t bytes = 0;
  int in_group = 0;
  for (const std::string& turn : turns) {
    const auto size = static_cast<int64_t>(turn.size());
    if (in_group > 0 && in_group < max_turns && bytes + size <= max_bytes) {
      groups.back() += '\n';
      groups.back() += turn;
    } else {
      groups.push_back(turn);
      bytes = in_group = 0;
    }
    bytes += size;
    ++in_group;
  }
  return groups;
}

}  // namespace shoal::text
