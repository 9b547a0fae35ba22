// Long text into utterances that a model can speak in one breath.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shoal::text {

// Consecutive stretches of `text`, each of at most `max_bytes` bytes, without white space at their ends and
// never empty; together they hold every character that is not white space, in order. An utterance takes as
// many whole sentences as fit; a sentence that is too long is cut at a clause end, else at a space, else
// between characters. Abbreviations, initials, decimals and short brackets ("(in a hurry tone)") are not cut
// at. Throws Error(invalid_argument): invalid UTF-8, or max_bytes < 16.
std::vector<std::string> split_utterances(std::string_view text, int max_bytes);

// True if there is a letter or a digit: punctuation by itself makes a model babble. Well-formed UTF-8.
bool is_speakable(std::string_view text);

}  // namespace shoal::text
