// Files and folders that appear under their name only when they are whole.
#pragma once

#include <cstddef>
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

// Creates `path`, which must not exist. Leaves no file behind when it fails. Throws Error: resource_exhausted
// (disk full), io.
void write_new_file(const std::string& path, std::span<const std::byte> bytes, NewFile kind);

// Syncs the names in a folder to disk; does nothing on systems without such a call.
void sync_folder(const std::string& path) noexcept;

// Throws Error from errno: resource_exhausted (disk full), else io.
[[noreturn]] void fail_with_errno(std::string_view path, std::string_view what);

}  // namespace shoal::runtime
