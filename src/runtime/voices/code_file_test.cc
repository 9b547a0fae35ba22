#include "runtime/voices/code_file.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include "base/error.h"

namespace shoal::runtime {
namespace {

using testing::ElementsAreArray;

const std::vector<uint16_t> kCodes = {0, 1, 2, 1023, 512, 7, 3, 3, 3, 1000, 999, 42};

CodeFileKey key_of(std::string_view clip, std::string_view codec) {
  return {.clip = hash_clip(std::as_bytes(std::span(clip))),
          .codec = codec_digest(codec, 3, 1024),
          .codebooks = 3,
          .codebook_size = 1024};
}

// Why a file is refused, or "" when it is accepted.
std::string problem_of(std::span<const std::byte> file, const CodeFileKey& key) {
  try {
    parse_code_file(file, key, "file");
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt_file);
    return error.message();
  }
}

// A file with a field of the header replaced and a checksum that fits again.
template <typename T>
std::vector<std::byte> forged(std::vector<std::byte> file, size_t offset, T value) {
  std::memcpy(file.data() + offset, &value, sizeof value);
  const uint64_t seed = XXH3_64bits(file.data(), 88);
  const uint64_t checksum = XXH3_64bits_withSeed(file.data() + 96, file.size() - 96, seed);
  std::memcpy(file.data() + 88, &checksum, sizeof checksum);
  return file;
}

TEST(ClipHash, IsSha256) {
  // FIPS 180-2, appendix B.1 and the empty message.
  EXPECT_EQ(hex(hash_clip(std::as_bytes(std::span("abc", 3)))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(hash_clip({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(CodeFile, StoresCodesUnderBothHashes) {
  const CodeFileKey key = key_of("abc", "codec");
  const std::vector<std::byte> file = make_code_file(key, kCodes);
  EXPECT_EQ(file.size(), 96 + 2 * kCodes.size());
  EXPECT_THAT(parse_code_file(file, key, "file"), ElementsAreArray(kCodes));
  EXPECT_THAT(code_file_path("/c", key),
              testing::MatchesRegex(
                  "/c/voices/ba/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad-[0-9a-f]{16}"
                  "\\.codes"));
  EXPECT_NE(code_file_path("/c", key), code_file_path("/c", key_of("abc", "other codec")));
  EXPECT_TRUE(parse_code_file(make_code_file(key, {}), key, "file").empty());
}

TEST(CodeFile, NoFlippedBitAndNoOtherLengthIsAccepted) {
  const CodeFileKey key = key_of("abc", "codec");
  const std::vector<std::byte> whole = make_code_file(key, kCodes);
  ASSERT_EQ(problem_of(whole, key), "");
  std::vector<std::byte> file = whole;
  for (size_t at = 0; at < file.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      file[at] ^= std::byte(1 << bit);
      EXPECT_NE(problem_of(file, key), "") << "byte " << at << ", bit " << bit;
      file[at] = whole[at];
    }
  }
  // Exactly as long as the rest of the file, so that a sanitizer sees a read beyond it.
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(problem_of(std::vector(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)), key),
              "")
        << size;
  for (size_t more = 1; more < 100; ++more) {
    file = whole;
    file.resize(whole.size() + more);
    EXPECT_NE(problem_of(file, key), "") << more;
  }
}

TEST(CodeFile, ForeignFilesAreRefusedDespiteAValidChecksum) {
  const CodeFileKey key = key_of("abc", "codec");
  const std::vector<std::byte> whole = make_code_file(key, kCodes);
  ASSERT_EQ(forged(whole, 12, uint32_t{3}), whole);  // forging nothing gives the same file
  const auto expect = [&](const std::vector<std::byte>& file, std::string_view part) {
    EXPECT_THAT(problem_of(file, key), testing::HasSubstr(part));
  };
  expect(make_code_file(key_of("abd", "codec"), kCodes), "another clip");
  expect(make_code_file(key_of("abc", "other"), kCodes), "another codec");
  expect(forged(whole, 8, uint32_t{2}), "version");
  expect(forged(whole, 12, uint32_t{4}), "codec");
  expect(forged(whole, 12, uint32_t{0}), "codec");
  expect(forged(whole, 16, uint64_t{5}), "length");
  expect(forged(whole, 16, uint64_t{0}), "length");
  expect(forged(whole, 16, ~uint64_t{0}), "frames");
  expect(forged(whole, 16, (uint64_t{1} << 63) + 4), "frames");  // 2 * 3 * this wraps around to the length
  expect(forged(whole, 96, uint16_t{1024}), "outside the codebook");
  expect(forged(whole, whole.size() - 2, uint16_t{0xffff}), "outside the codebook");
}

}  // namespace
}  // namespace shoal::runtime
