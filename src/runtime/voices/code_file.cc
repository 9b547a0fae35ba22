#include "runtime/voices/code_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <xxhash.h>

#include "base/error.h"

namespace shoal::runtime {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is read as it lies in memory");

constexpr uint32_t kVersion = 1;
constexpr uint64_t kMaxFrames = 1 << 20;  // 13 hours in S1-mini's frames
constexpr size_t kCodecDigits = 16;       // of the digest, in the file's name

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t codebooks;
  uint64_t frames;
  Digest codec;
  ClipHash clip;
  uint64_t checksum;
};
static_assert(sizeof(Header) == 96 && std::has_unique_object_representations_v<Header>);

uint64_t checksum_of(const Header& header, std::span<const std::byte> codes) {
  const uint64_t seed = XXH3_64bits(&header, offsetof(Header, checksum));
  return XXH3_64bits_withSeed(codes.data(), codes.size(), seed);
}

}  // namespace

Digest codec_digest(std::string_view fingerprint, int codebooks, int64_t codebook_size) {
  return Sha256()
      .update(concat(kVersion, ' ', codebooks, ' ', codebook_size, ' '))
      .update(fingerprint)
      .finish();
}

std::string code_file_path(const std::string& dir, const CodeFileKey& key) {
  const std::string clip = hex_digits(key.clip);
  return concat(dir, '/', kCodeFolder, '/', clip.substr(0, 2), '/', clip, '-',
                hex_digits(key.codec).substr(0, kCodecDigits), kCodeFileEnding);
}

int64_t max_code_file_bytes(int codebooks) {
  return static_cast<int64_t>(sizeof(Header) +
                              kMaxFrames * static_cast<uint64_t>(codebooks) * sizeof(uint16_t));
}

std::vector<std::byte> make_code_file(const CodeFileKey& key, std::span<const uint16_t> codes) {
  Header header{.version = kVersion,
                .codebooks = static_cast<uint32_t>(key.codebooks),
                .frames = codes.size() / static_cast<size_t>(key.codebooks),
                .codec = key.codec,
                .clip = key.clip};
  CHECK(header.frames * header.codebooks == codes.size(), codes.size(), " codes");
  if (header.frames > kMaxFrames)
    fail(ErrorCode::too_large, "clip: ", header.frames, " frames, at most ", kMaxFrames, " are kept");
  std::memcpy(header.magic, kCodeFileMagic.data(), sizeof header.magic);
  const std::span<const std::byte> payload = std::as_bytes(codes);
  header.checksum = checksum_of(header, payload);
  std::vector<std::byte> file(sizeof header + payload.size());
  std::memcpy(file.data(), &header, sizeof header);
  std::ranges::copy(payload, file.begin() + sizeof header);
  return file;
}

std::span<const uint16_t> parse_code_file(std::span<const std::byte> file, const CodeFileKey& key,
                                          std::string_view name) {
  const auto require = [name](bool condition, std::string_view problem) {
    if (!condition) fail(ErrorCode::corrupt_file, name, ": ", problem);
  };
  Header header;
  require(file.size() >= sizeof header, "too short to be a cache file");
  std::memcpy(&header, file.data(), sizeof header);
  require(std::string_view(header.magic, sizeof header.magic) == kCodeFileMagic, "not a cache file");
  require(header.version == kVersion, "written by another version of the program");
  require(header.clip == key.clip, "written for another clip");
  require(header.codec == key.codec && header.codebooks == static_cast<uint32_t>(key.codebooks),
          "written by another codec");
  require(header.frames <= kMaxFrames, "claims too many frames");  // so that the product below fits
  const std::span<const std::byte> payload = file.subspan(sizeof header);
  require(payload.size() == header.frames * header.codebooks * sizeof(uint16_t),
          "has another length than it claims");
  require(checksum_of(header, payload) == header.checksum, "damaged (its checksum is wrong)");
  CHECK(reinterpret_cast<uintptr_t>(payload.data()) % alignof(uint16_t) == 0, "unaligned file");
  const std::span codes(reinterpret_cast<const uint16_t*>(payload.data()), payload.size() / sizeof(uint16_t));
  require(std::ranges::all_of(codes, [&](uint16_t code) { return code < key.codebook_size; }),
          "holds a code outside the codebook");
  return codes;
}

}  // namespace shoal::runtime
