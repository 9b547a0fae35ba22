// Prompts of the dual-AR models: text and reference codes laid out as columns.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace shoal::text {

// The input of the slow transformer: one column per position.
struct PromptColumns {
  int num_codebooks = 0;
  // [columns, 1 + num_codebooks]. A text column is (id, 0, ..., 0); a frame of codes c is
  // (semantic_begin + c[0], c[0], ..., c[num_codebooks - 1]).
  std::vector<int32_t> values;
  int64_t columns() const { return static_cast<int64_t>(values.size()) / (1 + num_codebooks); }
};

// A piece of speech whose words are known: a voice reference, or an utterance generated before.
struct ReferenceCodes {
  std::string text;                // UTF-8, used verbatim
  const int32_t* codes = nullptr;  // [frames, num_codebooks]; must outlive the call it is passed to
  int64_t frames = 0;
  std::optional<int> speaker = {};  // S2: whose voice it is; absent: of the speaker with its index
};

// S1 layout: <|interleave|>, one group per reference (speaker tag, text, codes, <|im_end|>), speaker tag,
// text. `specials` says how the reference texts and `text` are read; the layout's own tokens are always
// control ids. Throws Error(invalid_argument) for invalid UTF-8, a negative code, or a first code beyond the
// semantic range; Error(unsupported) when the tokenizer lacks a control token of the layout.
PromptColumns build_s1_prompt(const Tokenizer& tokenizer, int num_codebooks,
                              std::span<const ReferenceCodes> references, std::string_view text,
                              SpecialTokens specials);

// S2 chat layout: a system message with the references, each under the tag of its speaker unless its text has
// tags, then for every earlier batch its user message and its
// codes as the assistant's answer, then the user message `text` and the opening of the answer. Errors as
// above.
PromptColumns build_s2_prompt(const Tokenizer& tokenizer, int num_codebooks,
                              std::span<const ReferenceCodes> references,
                              std::span<const ReferenceCodes> history, std::string_view text,
                              SpecialTokens specials);

// Splits a dialogue at its "<|speaker:i|>" tags; every turn keeps its tag and is trimmed. Text before the
// first tag is dropped; without tags there are no turns (as in fish-speech).
std::vector<std::string> split_s2_turns(std::string_view text);

// Joins consecutive turns with "\n" into user messages of at most `max_turns` turns and `max_bytes` bytes
// (newlines not counted); a turn that is longer by itself is not cut.
std::vector<std::string> group_s2_turns(std::span<const std::string> turns, int64_t max_bytes,
                                        int max_turns = 5);

}  // namespace shoal::text
