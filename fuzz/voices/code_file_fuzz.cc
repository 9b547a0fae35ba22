// Any bytes as a cache file of encoded clips: codes inside the codebook that are in the file, or an Error.
// The first bytes decide whether the checksum and the keys are made to match, so that the code after these
// checks is reached.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <xxhash.h>

#include "base/error.h"
#include "runtime/voices/code_file.h"

namespace {

using shoal::runtime::CodeFileKey;

// Offsets as code_file.h states them.
void mend(std::vector<std::byte>& file, const CodeFileKey& key, uint8_t what) {
  if (file.size() < 96) return;
  if (what & 1) std::memcpy(file.data(), shoal::runtime::kCodeFileMagic.data(), 8);
  const uint32_t version = 1, codebooks = static_cast<uint32_t>(key.codebooks);
  if (what & 2) std::memcpy(file.data() + 8, &version, 4);
  if (what & 4) std::memcpy(file.data() + 12, &codebooks, 4);
  if (what & 8) std::memcpy(file.data() + 24, key.codec.data(), 32);
  if (what & 16) std::memcpy(file.data() + 56, key.clip.data(), 32);
  const uint64_t checksum =
      XXH3_64bits_withSeed(file.data() + 96, file.size() - 96, XXH3_64bits(file.data(), 88));
  if (what & 32) std::memcpy(file.data() + 88, &checksum, 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const CodeFileKey key{.clip = {1, 2, 3},
                        .codec = shoal::runtime::codec_digest("fuzz", 10, 4096),
                        .codebooks = 1 + data[1] % 16,
                        .codebook_size = 4096};
  const auto bytes = std::as_bytes(std::span(data + 2, size - 2));
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  mend(file, key, data[0]);
  try {
    const std::span<const uint16_t> codes = shoal::runtime::parse_code_file(file, key, "fuzz");
    if (codes.size() % static_cast<size_t>(key.codebooks) != 0) std::abort();
    for (const uint16_t code : codes)
      if (code >= key.codebook_size) std::abort();
    if (shoal::runtime::make_code_file(key, codes) != file)
      std::abort();  // there is one file for these codes
  } catch (const shoal::Error& error) {
    if (error.code() != shoal::ErrorCode::corrupt_file) std::abort();
  }
  return 0;
}
