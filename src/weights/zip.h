// The table of contents of a zip archive whose entries are stored, not compressed.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace shoal::weights {

struct ZipEntry {
  std::string_view name;  // into the archive's bytes
  std::span<const std::byte> bytes;
};

// The entries in the order of the central directory; zip64 is understood. Refused are: compressed and
// encrypted entries (so there are no zip bombs), more than 65,536 entries, two entries of one name, entries
// that overlap or leave the file, a local header that contradicts the directory, archives of several disks or
// with bytes between the parts of the directory. Check sums are not verified: that would read the whole file.
// `name` is for messages. Throws Error: corrupt_file, unsupported, too_large.
std::vector<ZipEntry> read_zip_directory(std::span<const std::byte> file, std::string_view name);

}  // namespace shoal::weights
