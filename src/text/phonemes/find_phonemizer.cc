#include <dlfcn.h>
#include <filesystem>
#include <unistd.h>

#include "base/error.h"
#include "text/phonemes/espeak_pool.h"

namespace shoal::phonemes {

std::string find_phonemizer() {
  namespace fs = std::filesystem;
  constexpr std::string_view kName = "shoal-phonemizer";
  std::vector<fs::path> places;
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (!failed) places.push_back(program.parent_path() / kName);
  Dl_info library{};  // where Shoal is a library of somebody else's program
  if (::dladdr(reinterpret_cast<const void*>(&find_phonemizer), &library) != 0 && library.dli_fname) {
    const fs::path folder = fs::path(library.dli_fname).parent_path();
    places.push_back(folder / kName);
    places.push_back(folder.parent_path() / "bin" / kName);
  }
#ifdef SHOAL_BUILD_PHONEMIZER
  places.emplace_back(SHOAL_BUILD_PHONEMIZER);
#endif
  for (const fs::path& place : places) {
    if (::access(place.c_str(), X_OK) == 0 && fs::is_regular_file(place, failed)) return place.string();
  }
#ifdef SHOAL_BUILD_PHONEMIZER
  const std::string_view remedy = "install it there";
#else
  const std::string_view remedy =
      "this build was made without libespeak-ng: install libespeak-ng-dev and espeak-ng-data and build again";
#endif
  fail(ErrorCode::unavailable, "phonemizer: ", kName, " is not installed (looked for ",
       places.empty() ? kName : places.front().native(), "); ", remedy, ", or send phonemes instead of text");
}

}  // namespace shoal::phonemes
