// A folder's files as one compressed archive.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace shoal::cli {

struct ArchivedFile {
  std::string name;  // relative to the folder, with '/' between
  std::string path;
  int64_t bytes = 0;
};

// Every file below a folder, sorted by name; links to files count as files. Hidden files and folders are left
// out. Throws Error: not_found, io.
std::vector<ArchivedFile> files_below(const std::string& folder);

// Called with the share done and the name of the file that is read. False: stop.
using ArchiveProgress = std::function<bool(double share, const std::string& name)>;

// Writes a gzip-compressed tar archive (POSIX.1-1988 ustar; sizes of 8 GiB and more as GNU tar writes them).
// The same files give the same bytes: entries have no times and no owners. `path` exists only once it is
// complete. Returns its size in bytes. Throws Error: io, unsupported (a name longer than the format holds),
// cancelled.
int64_t write_archive(const std::vector<ArchivedFile>& files, const std::string& path,
                      const ArchiveProgress& progress);

}  // namespace shoal::cli
