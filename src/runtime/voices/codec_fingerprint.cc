#include "runtime/voices/codec_fingerprint.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/error.h"
#include "runtime/voices/sha256.h"

namespace shoal::runtime {
namespace {

constexpr int64_t kBlockBytes = 4096;
constexpr int64_t kBlocks = 256;  // 1 MiB of reads, however large the file is
constexpr size_t kFingerprintDigits = 32;

// Closed at the end of its scope.
struct OpenFile {
  int fd;
  explicit OpenFile(const std::string& path) : fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd >= 0) return;
    const bool missing = errno == ENOENT || errno == ENOTDIR;
    fail(missing ? ErrorCode::not_found : ErrorCode::io, path, ": cannot be opened: ", std::strerror(errno));
  }
  ~OpenFile() { close(fd); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
};

void add_block(const OpenFile& file, const std::string& path, int64_t offset, int64_t count, Sha256& hash) {
  std::byte block[kBlockBytes];
  for (int64_t done = 0; done < count;) {
    const ssize_t got = pread(file.fd, block + done, static_cast<size_t>(count - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(ErrorCode::io, path, ": cannot be read: ", std::strerror(errno));
    if (got == 0) fail(ErrorCode::io, path, ": became shorter while it was read");
    done += got;
  }
  hash.update(std::span(block, static_cast<size_t>(count)));
}

void add_file(const std::string& path, Sha256& hash) {
  const OpenFile file(path);
  struct stat status{};
  if (fstat(file.fd, &status) != 0 || !S_ISREG(status.st_mode))
    fail(ErrorCode::io, path, ": expected a regular file");
  const int64_t size = status.st_size;
  hash.update(concat("file ", size, '\n'));
  const int64_t last = std::max<int64_t>(0, size - kBlockBytes);
  const int64_t blocks = std::min(kBlocks, (size + kBlockBytes - 1) / kBlockBytes);
  for (int64_t i = 0; i < blocks; ++i) {
    // i * last / (blocks - 1), in an order that cannot overflow
    const int64_t offset = blocks > 1 ? last / (blocks - 1) * i + last % (blocks - 1) * i / (blocks - 1) : 0;
    add_block(file, path, offset, std::min(kBlockBytes, size - offset), hash);
  }
}

std::string joined(const std::vector<int64_t>& values) {
  std::string text = "[";
  for (const int64_t value : values) text += std::to_string(value) + " ";
  return text + "]";
}

// Every field, in the order of the struct; q_dim only where it differs from latent_dim, so that files from
// before q_dim existed keep their fingerprint.
std::string description(const dac::Config& c) {
  return concat(
      c.sample_rate_hz, ' ', c.encoder_dim, joined(c.encoder_rates), joined(c.encoder_transformer_layers),
      c.decoder_dim, joined(c.decoder_rates), c.latent_dim, joined(c.downsample_factor), c.n_codebooks, ' ',
      c.codebook_size, ' ', c.semantic_codebook_size, ' ', c.codebook_dim, ' ', c.q_layers, ' ', c.q_heads,
      ' ', c.q_head_dim, ' ', c.q_inter, ' ', c.q_window, ' ', c.q_block_size, ' ', c.head_dim, ' ',
      c.enc_window, ' ', c.enc_block_size, ' ', std::bit_cast<uint64_t>(c.rope_base), ' ',
      std::bit_cast<uint32_t>(c.norm_eps), c.q_dim == c.latent_dim ? "" : concat(" q_dim ", c.q_dim));
}

}  // namespace

std::string codec_fingerprint(const std::string& codec_path, const dac::Config& config, MatrixFormat format) {
  Sha256 hash;
  add_file(codec_path, hash);
  hash.update(concat(description(config), ' ', name_of(format.operand)));
  if (format.weights != format.operand) hash.update(concat(' ', name_of(format.weights)));
  return hex_digits(hash.finish()).substr(0, kFingerprintDigits);
}

}  // namespace shoal::runtime
