#include "cli/model_archive.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <zlib.h>

#include "base/error.h"
#include "base/printable.h"

namespace shoal::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTarBlock = 512, kPiece = size_t{1} << 20;
constexpr const char* kLevel = "wb1";  // weights hardly shrink further

// The header of an entry: fields at fixed places, numbers in octal digits.
class TarHeader {
 public:
  explicit TarHeader(const ArchivedFile& file) {
    set_name(file.name);
    put_octal(100, 8, 0644);
    put_octal(108, 8, 0);
    put_octal(116, 8, 0);
    put_size(file.bytes);
    put_octal(136, 12, 0);
    block_[156] = '0';
    put(257, "ustar");
    put(263, "00");
    set_checksum();
  }

  std::string_view bytes() const { return {block_.data(), block_.size()}; }

 private:
  void put(size_t at, std::string_view text) {
    std::ranges::copy(text, block_.begin() + static_cast<long>(at));
  }

  void put_octal(size_t at, size_t width, uint64_t number) {
    for (size_t i = at + width - 1; i-- > at; number /= 8) block_[i] = static_cast<char>('0' + number % 8);
  }

  void put_size(int64_t bytes) {
    auto rest = static_cast<uint64_t>(bytes);
    if (rest < uint64_t{1} << 33) return put_octal(124, 12, rest);
    for (size_t i = 124 + 12; i-- > 124; rest >>= 8) block_[i] = static_cast<char>(rest & 0xff);
    block_[124] = static_cast<char>(0x80);
  }

  // In two fields, cut at a slash, if one is too short.
  void set_name(const std::string& name) {
    if (name.size() <= 100) return put(0, name);
    const size_t cut = name.find('/', name.size() - 101);
    if (cut > 155)  // npos, too
      fail(ErrorCode::unsupported, printable(name), ": the name is too long for an archive");
    put(0, std::string_view(name).substr(cut + 1));
    put(345, std::string_view(name).substr(0, cut));
  }

  void set_checksum() {
    put(148, "        ");
    uint64_t sum = 0;
    for (const char c : block_) sum += static_cast<unsigned char>(c);
    put_octal(148, 7, sum);
    block_[154] = '\0';
  }

  std::array<char, kTarBlock> block_{};
};

// Removes what is not completed.
class GzipFile {
 public:
  explicit GzipFile(std::string path) : path_(std::move(path)), file_(gzopen(path_.c_str(), kLevel)) {
    if (!file_) fail(ErrorCode::io, printable(path_), ": could not be written: ", std::strerror(errno));
    gzbuffer(file_, 1 << 18);
  }
  ~GzipFile() {
    if (file_) gzclose(file_);
    std::error_code ignored;
    if (!completed_) fs::remove(path_, ignored);
  }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  void write(std::string_view bytes) {
    if (bytes.empty()) return;
    const int written = gzwrite(file_, bytes.data(), static_cast<unsigned>(bytes.size()));
    if (written != static_cast<int>(bytes.size())) fail_to_write();
  }

  void complete(const std::string& final_path) {
    if (gzclose(std::exchange(file_, nullptr)) != Z_OK) fail_to_write();
    std::error_code error;
    fs::rename(path_, final_path, error);
    if (error) fail(ErrorCode::io, printable(final_path), ": could not be written: ", error.message());
    completed_ = true;
  }

 private:
  [[noreturn]] void fail_to_write() const {
    fail(ErrorCode::io, printable(path_), ": could not be written: ", std::strerror(errno));
  }

  const std::string path_;
  gzFile file_;
  bool completed_ = false;
};

// The file's bytes, which must be as many as it had when it was listed.
void copy_file(const ArchivedFile& file, GzipFile& into, const std::function<void(int64_t)>& passed) {
  std::ifstream in(file.path, std::ios::binary);
  std::vector<char> piece(kPiece);
  int64_t left = file.bytes;
  while (left > 0 && in) {
    in.read(piece.data(), static_cast<std::streamsize>(std::min<int64_t>(left, kPiece)));
    const auto got = static_cast<size_t>(in.gcount());
    into.write({piece.data(), got});
    left -= static_cast<int64_t>(got);
    passed(static_cast<int64_t>(got));
  }
  if (left > 0) fail(ErrorCode::io, printable(file.path), ": could not be read to its end");
  const size_t over = static_cast<size_t>(file.bytes) % kTarBlock;
  if (over > 0) into.write(std::string(kTarBlock - over, '\0'));
}

}  // namespace

std::vector<ArchivedFile> files_below(const std::string& folder) {
  std::vector<ArchivedFile> files;
  try {
    for (auto at = fs::recursive_directory_iterator(folder); at != fs::recursive_directory_iterator(); ++at) {
      if (at->path().filename().string().starts_with(".")) {
        if (at->is_directory()) at.disable_recursion_pending();
        continue;
      }
      if (!at->is_regular_file()) continue;
      files.push_back({.name = at->path().lexically_relative(folder).generic_string(),
                       .path = at->path().string(),
                       .bytes = static_cast<int64_t>(at->file_size())});
    }
  } catch (const fs::filesystem_error& error) {
    fail(fs::exists(folder) ? ErrorCode::io : ErrorCode::not_found, printable(folder), ": ",
         error.code().message());
  }
  std::ranges::sort(files, {}, &ArchivedFile::name);
  return files;
}

int64_t write_archive(const std::vector<ArchivedFile>& files, const std::string& path,
                      const ArchiveProgress& progress) {
  int64_t total = 1, done = 0;
  for (const ArchivedFile& file : files) total += file.bytes;
  GzipFile archive(path + ".part");
  for (const ArchivedFile& file : files) {
    archive.write(TarHeader(file).bytes());
    copy_file(file, archive, [&](int64_t bytes) {
      done += bytes;
      if (!progress(static_cast<double>(done) / static_cast<double>(total), file.name))
        fail(ErrorCode::cancelled, "interrupted: no archive was written");
    });
  }
  archive.write(std::string(2 * kTarBlock, '\0'));
  archive.complete(path);
  return static_cast<int64_t>(fs::file_size(path));
}

}  // namespace shoal::cli
