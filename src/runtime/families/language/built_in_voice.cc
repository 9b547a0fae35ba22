#include <cstdlib>
#include <dlfcn.h>
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
  Dl_info library{};  // where Shoal is a library of somebody else's program
  if (::dladdr(reinterpret_cast<const void*>(&built_in_voice_dir), &library) != 0 && library.dli_fname) {
    const std::filesystem::path folder = std::filesystem::path(library.dli_fname).parent_path();
    places.push_back((folder / "voice").string());
    // In lib, or in the lib of one architecture.
    for (const auto& prefix : {folder.parent_path(), folder.parent_path().parent_path()})
      places.push_back((prefix / "share/shoal/voice").string());
  }
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
