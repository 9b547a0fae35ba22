#include "weights/zip.h"

#include <gtest/gtest.h>

#include "weights/archives_testing.h"

namespace shoal::weights {
namespace {

std::vector<ZipEntry> read(const std::string& file) { return read_zip_directory(bytes_of(file), "x"); }
std::optional<ErrorCode> zip_code(const std::string& file) {
  return code_of([&] { read(file); });
}
std::string text_of(const ZipEntry& entry) {
  return {reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size()};
}

// The zip64 end record and its locator, as they stand before the plain end record.
struct End64 {
  uint64_t entries = 1, bytes = 0, offset = 0, record = 0;
};
std::string end64(const End64& end) {
  return "PK\x06\x06" + little<uint64_t>(44) + std::string(12, '\0') + little(end.entries) +
         little(end.entries) + little(end.bytes) + little(end.offset) + "PK\x06\x07" + std::string(4, '\0') +
         little(end.record) + little<uint32_t>(1);
}

TEST(Zip, ReadsStoredEntriesInDirectoryOrder) {
  const std::string file = zip_file({{"b", "hello"}, {"a/c", ""}, {"z", std::string(3, '\0')}});
  const auto entries = read(file);
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].name, "b");
  EXPECT_EQ(text_of(entries[0]), "hello");
  EXPECT_EQ(entries[1].name, "a/c");
  EXPECT_TRUE(entries[1].bytes.empty());
  EXPECT_EQ(entries[2].bytes.size(), 3u);
  EXPECT_TRUE(read(zip_file({})).empty());
}

TEST(Zip, ACommentMayContainASignature) {
  const ZipEnd end{.comment = concat("PK\x05\x06 ", std::string(40, 'x'))};
  EXPECT_EQ(text_of(read(zip_file({{"a", "1"}}, end))[0]), "1");
}

TEST(Zip, ReadsSizesThatFollowTheData) {  // flag 8: the local header has zeros
  EXPECT_EQ(text_of(read(zip_file({{.name = "a", .data = "123", .flags = 8, .local_size = 0}}))[0]), "123");
  EXPECT_EQ(zip_code(zip_file({{.name = "a", .data = "123", .local_size = 0}})), ErrorCode::corrupt_file);
}

TEST(Zip, Zip64SizesComeFromTheExtraField) {
  ZipPart part{.name = "a", .data = "12345", .size = 0xffffffff};
  part.extra = little<uint16_t>(7) + little<uint16_t>(1) + "?" + little<uint16_t>(1) + little<uint16_t>(16) +
               little<uint64_t>(5) + little<uint64_t>(5);
  EXPECT_EQ(text_of(read(zip_file({part}))[0]), "12345");

  part.extra = little<uint16_t>(1) + little<uint16_t>(16) + little<uint64_t>(5) + little<uint64_t>(6);
  EXPECT_EQ(zip_code(zip_file({part})), ErrorCode::corrupt_file) << "two sizes of a stored entry";
  part.extra = little<uint16_t>(1) + little<uint16_t>(8) + little<uint64_t>(5);
  EXPECT_EQ(zip_code(zip_file({part})), ErrorCode::corrupt_file) << "field too short";
  part.extra = little<uint16_t>(1) + little<uint16_t>(16) + std::string(16, '\xff');
  EXPECT_EQ(zip_code(zip_file({part})), ErrorCode::corrupt_file) << "2^64 - 1 bytes";
  part.extra = little<uint16_t>(1) + little<uint16_t>(999);
  EXPECT_EQ(zip_code(zip_file({part})), ErrorCode::corrupt_file) << "field longer than the block";
  part.extra = "";
  EXPECT_EQ(zip_code(zip_file({part})), ErrorCode::corrupt_file) << "no field at all";
}

TEST(Zip, ReadsTheZip64EndRecord) {
  const std::string plain = zip_file({{"a", "12345"}});
  const uint64_t offset = 30 + 1 + 5, bytes = 46 + 1;
  const End64 good{1, bytes, offset, offset + bytes};
  const auto with = [&](const End64& end) {
    return zip_file({{"a", "12345"}},
                    {.entries = 0xffff, .directory_offset = 0xffffffff, .before = end64(end)});
  };
  EXPECT_EQ(text_of(read(with(good))[0]), "12345");
  const uint64_t huge = ~uint64_t{0};
  const End64 wrong[] = {{2, bytes, offset, offset + bytes},
                         {huge, bytes, offset, offset + bytes},
                         {0, bytes, offset, offset + bytes},
                         {1, bytes, offset + 1, offset + bytes},
                         {1, bytes - 1, offset, offset + bytes},
                         {1, huge, offset, offset + bytes},
                         {1, bytes, huge, offset + bytes},
                         {1, offset + bytes - huge, huge, offset + bytes},
                         {1, bytes, offset, huge},
                         {1, bytes, offset, offset},
                         {1, bytes, offset, offset + bytes + 1}};
  for (const End64& end : wrong)
    EXPECT_NE(zip_code(with(end)), std::nullopt) << end.entries << " " << end.offset;
  // A plain record that contradicts the wide one.
  EXPECT_EQ(zip_code(zip_file({{"a", "12345"}}, {.entries = 3, .before = end64(good)})),
            ErrorCode::corrupt_file);
}

TEST(Zip, RefusesCompressedAndEncryptedEntries) {
  EXPECT_EQ(zip_code(zip_file({{.name = "a", .data = "x", .method = 8}})), ErrorCode::unsupported);
  EXPECT_EQ(zip_code(zip_file({{.name = "a", .data = "x", .method = 14}})), ErrorCode::unsupported);
  EXPECT_EQ(zip_code(zip_file({{.name = "a", .data = "x", .flags = 1}})), ErrorCode::unsupported);
  EXPECT_EQ(zip_code(zip_file({{.name = "a", .data = "x", .flags = 0x2000}})), ErrorCode::unsupported);
}

TEST(Zip, RefusesContradictions) {
  const auto corrupt = ErrorCode::corrupt_file;
  EXPECT_EQ(zip_code(zip_file({{"a", "1"}, {"a", "2"}})), corrupt) << "duplicate name";
  EXPECT_EQ(zip_code(zip_file({{.name = "a", .data = "1", .local_name = "b"}})), corrupt) << "other name";
  EXPECT_EQ(zip_code(zip_file({{.name = "a", .data = "1", .local_size = 2}})), corrupt) << "other size";
  EXPECT_EQ(zip_code(zip_file({{.name = "a", .data = "1", .size = 2, .local_size = 2}})), corrupt)
      << "into directory";
  EXPECT_EQ(zip_code(zip_file({{.name = "a", .data = "1", .size = 0xfffffff0, .local_size = 0xfffffff0}})),
            corrupt);
  EXPECT_EQ(zip_code(zip_file({{.name = "a", .data = "1", .local_offset = 1}})), corrupt)
      << "no header there";
  EXPECT_EQ(zip_code(zip_file({{.name = "a", .data = "1", .local_offset = 0xfffffff0}})), corrupt)
      << "outside";
  EXPECT_EQ(zip_code(zip_file({{"a", "1"}}, {.entries = 2})), corrupt) << "entry missing";
  EXPECT_EQ(zip_code(zip_file({{"a", "1"}, {"b", "2"}}, {.entries = 1})), corrupt) << "entry too many";
  EXPECT_EQ(zip_code(zip_file({{"a", "1"}}, {.directory_offset = 5})), corrupt);
  EXPECT_EQ(zip_code(zip_file({{"a", "1"}}, {.before = "gap"})), corrupt);
  EXPECT_EQ(zip_code("not a zip"), corrupt);
  EXPECT_EQ(zip_code(""), corrupt);
}

TEST(Zip, RefusesOverlappingEntries) {
  // The data of "a" is itself an entry, "b"; the directory lists both (a quoted entry makes files inside
  // files).
  const std::string inner = zip_file({{"b", "22"}}).substr(0, 30 + 1 + 2);
  const std::string file = zip_file({{"a", inner}, {.name = "b", .data = "22", .local_offset = 31}});
  EXPECT_EQ(zip_code(file), ErrorCode::corrupt_file);
}

TEST(Zip, DamagedArchivesOpenOrThrowOurError) {
  const std::string file = zip_file({{"one", "hello"}, {"two", "world"}});
  ASSERT_EQ(read(file).size(), 2u);
  damage(file, [&](const std::string& bytes) {
    code_of([&] {
      size_t total = 0;
      for (const ZipEntry& entry : read(bytes)) total += text_of(entry).size();
      EXPECT_LE(total, bytes.size());
    });
  });
}

}  // namespace
}  // namespace shoal::weights
