// A folder's goldens of a fish-speech language model, and its tokenizer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "tests/parity/goldens.h"
#include "text/tokenizer.h"

namespace shoal::parity {

struct FishGoldens {
  // lm_goldens.{json,safetensors} of S1's form, or s2_goldens.* of S2's. Throws Error where one of the pair
  // is missing or unreadable.
  static FishGoldens open(const std::string& dir);
  // Whether there is any file of goldens: open() refuses half of the pair.
  static bool lies_in(const std::string& dir);

  // The goldens' cases by name; none where the document has no "cases".
  const Json::Object& cases() const;
  // The array under `key`; nullptr if it is absent or empty.
  const Json::Array* list(const std::string& key) const;

  std::string dir;
  bool is_s1 = true;
  std::string prefix;  // of the names of goldens: "lm." or "s2."
  Json document;
  Goldens tensors;
  // Of tokenizer.tiktoken and special_tokens.json, or tokenizer.json; nullptr where the folder has none.
  std::unique_ptr<const text::Tokenizer> tokenizer;
};

// The strings of an array; none for nullptr.
std::vector<std::string> strings_of(const Json* array);

}  // namespace shoal::parity
