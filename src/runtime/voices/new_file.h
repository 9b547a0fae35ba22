// Files and folders that appear under their name only when they are whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shoal::runtime {

// What such a file or folder is called while it is in the making: ".shoal-...", unlike any voice name, and
// unlike any other of this process and, with high probability, of others that share the folder.
std::string temporary_name();
bool is_temporary_name(std::string_view name);

enum class NewFile {
  cached,  // may be lost or torn by a power failure; read-only, because it never changes
  kept,    // on the disk when the call returns
};

// A folder in the making, under a temporary name in `parent`: deleted unless it is kept, after it was
// renamed.
class NewFolder {
 public:
  // Throws Error as fail_with_errno.
  explicit NewFolder(const std::string& parent);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  const std::string& path() const { return path_; }
  void keep() { path_.clear(); }

 private:
  std::string path_;
};

// A file that must be new, deleted unless it is kept. Throws Error as fail_with_errno.
class Output {
 public:
  Output(std::string path, NewFile kind);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Fails if the disk has less room.
  void reserve(int64_t bytes);
  void write(int64_t offset, std::span<const std::byte> bytes);
  void keep();

 private:
  const std::string path_;
  const NewFile kind_;
  int fd_ = -1;
  bool kept_ = false;
};

// Creates `path`, which must not exist. Leaves no file behind when it fails. Throws Error: resource_exhausted
// (disk full), io.
void write_new_file(const std::string& path, std::span<const std::byte> bytes, NewFile kind);

// Syncs the names in a folder to disk; does nothing on systems without such a call.
void sync_folder(const std::string& path) noexcept;

// Throws Error from errno: resource_exhausted (disk full), else io.
[[noreturn]] void fail_with_errno(std::string_view path, std::string_view what);

}  // namespace shoal::runtime
