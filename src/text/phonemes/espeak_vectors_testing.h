// For tests: what espeak-ng 1.51 says and Kokoro's phonemes for it (tests/data/kokoro), made by the official
// Python code.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace shoal::phonemes::testing {

inline Json espeak_vectors() {
  return Json::read_file(SHOAL_SOURCE_DIR "/tests/data/kokoro/espeak_vectors.json", int64_t{64} << 20);
}

// The file writes ^ for U+0361.
inline std::string with_ties(std::string text) {
  for (size_t at; (at = text.find('^')) != std::string::npos;) text.replace(at, 1, "\u0361");
  return text;
}

}  // namespace shoal::phonemes::testing
