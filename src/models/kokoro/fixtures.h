// For tests: official files of a model, where there are any.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace shoal::kokoro {

inline constexpr const char* kNoFixtures =
    "SHOAL_KOKORO_FIXTURES names no folder with config.json, kokoro-v1_0.pth and voices/";

inline std::optional<std::string> fixtures_folder() {
  const char* folder = std::getenv("SHOAL_KOKORO_FIXTURES");
  if (!folder || !*folder) return std::nullopt;
  return folder;
}

}  // namespace shoal::kokoro
