// The file that keeps the codes of one clip. Little-endian:
//   bytes 0  magic  8 version  12 codebooks  16 frames  24 codec digest  56 clip hash  88 checksum
//         96 codes, 16 bits each, [frames, codebooks]; then the file ends
// The checksum is XXH3 (64 bits) of everything else: it finds damage, not malice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/voices/code_store.h"
#include "runtime/voices/sha256.h"

namespace shoal::runtime {

inline constexpr std::string_view kCodeFileMagic = "SHOALCOD";
inline constexpr std::string_view kCodeFileEnding = ".codes";
inline constexpr std::string_view kCodeFolder = "voices";  // in the cache folder

// The codec and clip that a file must have been written for.
struct CodeFileKey {
  ClipHash clip{};
  Digest codec{};
  int codebooks = 0;
  int64_t codebook_size = 0;
};

// Covers the codec's fingerprint, its codebooks and the format version: files of other codecs or program
// versions have other names.
Digest codec_digest(std::string_view fingerprint, int codebooks, int64_t codebook_size);

// DIR/voices/<first two digits>/<clip hash>-<start of the codec digest>.codes
std::string code_file_path(const std::string& dir, const CodeFileKey& key);

// No file is larger: one that is was not written by this program.
int64_t max_code_file_bytes(int codebooks);

std::vector<std::byte> make_code_file(const CodeFileKey& key, std::span<const uint16_t> codes);

// The codes in `file`, which must be aligned to 2 bytes. `name` starts the messages.
// Throws Error(corrupt_file) unless the file is whole and was written for `key`, and every code is below
// key.codebook_size.
std::span<const uint16_t> parse_code_file(std::span<const std::byte> file, const CodeFileKey& key,
                                          std::string_view name);

}  // namespace shoal::runtime
