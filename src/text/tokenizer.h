// Text to token ids and back: byte-level BPE from tokenizer.tiktoken or from a Hugging Face tokenizer.json.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::text {

// The meaning of a spelling such as "<|im_end|>" inside the text.
enum class SpecialTokens {
  recognise,  // its control id, as fish-speech's tokenizer does
  as_text,    // ordinary text: user text can never end or open a turn
};

// Immutable once loaded; every function may be called from any thread.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // The ids of UTF-8 text; nothing is added at either end. Throws Error(invalid_argument) for invalid UTF-8
  // ("text: not valid UTF-8 (byte N)"), Error(too_large) when a regular expression of the tokenizer exceeds
  // its limits.
  virtual std::vector<int32_t> encode(std::string_view text, SpecialTokens specials) const = 0;

  // The bytes of the ids; a special token gives its spelling. They may end inside a UTF-8 character. Throws
  // Error(invalid_argument) for an id outside the vocabulary.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;

  // Id of a special token by its spelling, e.g. "<|interleave|>".
  virtual std::optional<int32_t> special_id(std::string_view spelling) const = 0;

  // "<|semantic:0|>", and the highest "<|semantic:i|>": id of code c of codebook 0 is semantic_begin() + c.
  virtual int32_t semantic_begin() const = 0;
  virtual int32_t semantic_end() const = 0;
  virtual int32_t im_end() const = 0;  // "<|im_end|>", the end of generation

  // Highest id + 1, special tokens included. The embedding table may have more rows (padding).
  virtual int64_t vocab_size() const = 0;
};

// Loads a tokenizer file: "*.json" as a Hugging Face tokenizer.json (special_tokens_path is not read: the
// file holds its special tokens), any other as tiktoken text. An empty special_tokens_path means S1-mini's
// own list. Throws Error: not_found, io, too_large; corrupt_file naming the line or key; unsupported naming
// the feature.
std::unique_ptr<const Tokenizer> load_tokenizer(const std::string& tokenizer_path,
                                                const std::string& special_tokens_path);

}  // namespace shoal::text
