// For tests: official files of a small model.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace shoal::kokoro {

// config.json and kokoro-v1_0.pth.
inline const std::string kFixture = SHOAL_SOURCE_DIR "/tests/data/kokoro/set_a";

// Voices in all their formats are too large for the tree: a folder like set_a with voices/, where there is
// one.
inline constexpr const char* kNoVoices = "SHOAL_KOKORO_FIXTURES names no folder with voices/";
inline std::optional<std::string> voices_fixture() {
  const char* folder = std::getenv("SHOAL_KOKORO_FIXTURES");
  if (!folder || !*folder) return std::nullopt;
  return std::string(folder) + "/voices";
}

}  // namespace shoal::kokoro
