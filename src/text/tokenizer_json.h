// Hugging Face tokenizer.json, as far as byte-level BPE goes.
#pragma once

#include <memory>
#include <string_view>

#include "text/tokenizer.h"

namespace shoal::text {

// Parses the contents of a tokenizer.json; `name` is for messages. Understood: model BPE over the byte-level
// alphabet (merges as "a b" or ["a", "b"], ignore_merges), added tokens, normalizer NFC, pre-tokenizers Split
// (a regular expression, isolated) and ByteLevel. Throws Error(unsupported) naming anything else,
// Error(corrupt_file) or Error(invalid_argument) for contradictions and wrong kinds.
std::unique_ptr<const Tokenizer> parse_tokenizer_json(std::string_view json, std::string_view name);

}  // namespace shoal::text
