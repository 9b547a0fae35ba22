#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "shoal/model.h"

namespace shoal {

std::string built_in_voice_dir() {
  if (const char* chosen = std::getenv("SHOAL_VOICE_DIR"); chosen && *chosen) {
    if (!is_directory(chosen)) fail(ErrorCode::not_found, "SHOAL_VOICE_DIR: ", chosen, " is not a folder");
    return chosen;
  }
  std::vector<std::string> places;
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (!failed) places.push_back((program.parent_path().parent_path() / "share/shoal/voice").string());
  places.emplace_back(SHOAL_BUILD_VOICE_DIR);
  std::string looked;
  for (const std::string& place : places) {
    if (is_directory(place)) return place;
    looked += (looked.empty() ? "" : ", ") + place;
  }
  fail(ErrorCode::not_found, "the built-in voice is not installed (looked in ", looked,
       "); give --model DIR or set SHOAL_VOICE_DIR");
}

}  // namespace shoal
