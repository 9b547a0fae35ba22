// Reading files: whole into memory, or mapped.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shoal {

// The part of a path after its last '/'.
std::string_view file_name(std::string_view path);

bool is_regular_file(const std::string& path);
bool is_directory(const std::string& path);

// The bytes of a regular file. Never waits for a FIFO, a device or a socket. Throws Error: not_found,
// invalid_argument (not a regular file), too_large (over max_bytes, by the file's size, before it is read),
// io.
std::string read_file(const std::string& path, int64_t max_bytes);

// A regular file mapped read-only. Move-only; views into it are valid while it lives.
// A file that shrinks while mapped kills its reader (SIGBUS): only for model files, which are too large to be
// read first, and must not be edited in place under a running program.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::string& path);  // throws Error: not_found, invalid_argument, io
  MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }
  // Gives the pages back to the system (they stay in its cache): resident memory falls, views stay valid.
  void release_pages() const;

 private:
  std::string path_;
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace shoal
