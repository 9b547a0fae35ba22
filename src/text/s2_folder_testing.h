// For tests: a model in the S2 layout that can speak, of the fixtures' language model and codec.
#pragma once

#include <filesystem>
#include <string>

#include "base/temporary_folder_testing.h"

namespace shoal::text {

// Random weights, 10 codebooks, 4096 positions.
class S2Folder {
 public:
  S2Folder() {
    const std::filesystem::path fixtures = std::string(SHOAL_SOURCE_DIR) + "/tests/data/fish";
    for (const auto& file : std::filesystem::directory_iterator(fixtures / "set_s2"))
      std::filesystem::create_symlink(file, folder_.path(file.path().filename().string()));
    for (const char* name : {"codec.pth", "codec_config.json"})
      std::filesystem::create_symlink(fixtures / "set_a" / name, folder_.path(name));
  }
  const std::string& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace shoal::text
