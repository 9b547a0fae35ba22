// A file without a place on disk, which children can read.
#pragma once

#include <string>
#include <string_view>

namespace shoal::fleet {

// It lives as long as this. Throws Error(io).
class MemoryFile {
 public:
  MemoryFile(const char* name, std::string_view content);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const;
  void replace(std::string_view content) const;

 private:
  const int file_;
};

}  // namespace shoal::fleet
