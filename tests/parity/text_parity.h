// Do our ids and columns of a text equal those of the official code? For any folder with lm_goldens.* or
// s2_goldens.* and a tokenizer. Missing goldens are counted as absent; failures are GoogleTest failures with
// the folder and the case.
#pragma once

#include <string>

namespace shoal::parity {

// The ids of special tokens and of the semantic range, and the ids of the texts under "tokenizer".
void check_tokenizer(const std::string& dir);
// The prompt of every case: its text, and references and history with their codes.
void check_prompts(const std::string& dir);
// Dialogues cut into turns and grouped again, the texts under "splits".
void check_splits(const std::string& dir);

}  // namespace shoal::parity
