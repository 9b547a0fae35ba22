#include "weights/zip.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_set>

#include "base/error.h"
#include "weights/byte_reader.h"
#include "weights/tensor_location.h"

namespace shoal::weights {
namespace {

// Field layout: PKWARE APPNOTE 6.3, sections 4.3.7 to 4.3.16.
constexpr uint32_t kLocalSignature = 0x04034b50, kCentralSignature = 0x02014b50, kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50, kLocator64Signature = 0x07064b50;
constexpr size_t kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr size_t kMaxCommentBytes = 65535;
constexpr uint32_t kSaturated32 = 0xffffffff;  // the true value is in a zip64 field
constexpr uint16_t kSaturated16 = 0xffff;
constexpr uint16_t kZip64Extra = 0x0001;
constexpr uint16_t kFlagEncrypted = 0x0001, kFlagStreamed = 0x0008, kFlagStrongEncryption = 0x0040,
                   kFlagMasked = 0x2000;
constexpr uint64_t kMaxZipEntries = 65536;

struct Directory {
  uint64_t entries = 0;
  uint64_t bytes = 0;
  uint64_t offset = 0;
};

struct CentralEntry {
  std::string_view name;
  uint16_t flags = 0;
  uint64_t size = 0;
  uint64_t local_offset = 0;
};

// What an entry occupies, from its local header to the end of its data.
struct Extent {
  uint64_t begin = 0;
  uint64_t end = 0;
};

ByteReader reader_at(std::span<const std::byte> file, uint64_t offset, std::string_view name) {
  if (offset > file.size())
    fail(ErrorCode::corrupt_file, name, ": the zip directory points to byte ", offset, " of ", file.size());
  return ByteReader(file.subspan(static_cast<size_t>(offset)), name);
}

void expect_signature(ByteReader& in, uint32_t expected, std::string_view what) {
  if (in.little<uint32_t>() != expected)
    fail(ErrorCode::corrupt_file, in.name(), ": no ", what, " where one must be");
}

// The position of the end record: the last signature whose comment ends with the file.
size_t find_end_record(std::span<const std::byte> file, std::string_view name) {
  for (size_t comment = 0; comment <= kMaxCommentBytes && kEndBytes + comment <= file.size(); ++comment) {
    const size_t offset = file.size() - kEndBytes - comment;
    ByteReader in(file.subspan(offset), name);
    if (in.little<uint32_t>() != kEndSignature) continue;
    in.take(16);
    if (in.little<uint16_t>() == comment) return offset;
  }
  fail(ErrorCode::corrupt_file, name, ": not a zip archive, or cut short: it has no end record");
}

// The zip64 end record, if a locator comes right before the plain one.
std::optional<Directory> read_directory64(std::span<const std::byte> file, size_t end_record,
                                          std::string_view name) {
  if (end_record < kLocator64Bytes) return std::nullopt;
  const size_t locator = end_record - kLocator64Bytes;
  ByteReader in(file.subspan(locator), name);
  if (in.little<uint32_t>() != kLocator64Signature) return std::nullopt;
  const auto disk = in.little<uint32_t>();
  const auto record = in.little<uint64_t>();
  const auto disks = in.little<uint32_t>();
  if (disk != 0 || disks > 1 || record > locator || locator - record != kEnd64Bytes)
    fail(ErrorCode::corrupt_file, name, ": the zip64 locator is wrong");

  ByteReader end = reader_at(file, record, name);
  expect_signature(end, kEnd64Signature, "zip64 end record");
  if (end.little<uint64_t>() != kEnd64Bytes - 12)
    fail(ErrorCode::corrupt_file, name, ": odd zip64 end record");
  end.take(4);  // versions
  const auto this_disk = end.little<uint32_t>(), directory_disk = end.little<uint32_t>();
  const auto entries_here = end.little<uint64_t>();
  Directory directory;
  directory.entries = end.little<uint64_t>();
  directory.bytes = end.little<uint64_t>();
  directory.offset = end.little<uint64_t>();
  if (this_disk != 0 || directory_disk != 0 || entries_here != directory.entries)
    fail(ErrorCode::unsupported, name, ": zip archives of several disks are not understood");
  if (directory.offset > record || record - directory.offset != directory.bytes)
    fail(ErrorCode::corrupt_file, name, ": the zip directory does not end where its end record begins");
  return directory;
}

Directory read_end(std::span<const std::byte> file, std::string_view name) {
  const size_t end_record = find_end_record(file, name);
  ByteReader in(file.subspan(end_record), name);
  in.take(4);
  const auto this_disk = in.little<uint16_t>(), directory_disk = in.little<uint16_t>();
  const auto entries_here = in.little<uint16_t>(), entries = in.little<uint16_t>();
  const auto bytes = in.little<uint32_t>(), offset = in.little<uint32_t>();
  const auto agrees = [](uint64_t narrow, uint64_t saturated, uint64_t wide) {
    return narrow == saturated || narrow == wide;
  };
  if (const std::optional<Directory> wide = read_directory64(file, end_record, name)) {
    if (!agrees(entries, kSaturated16, wide->entries) || !agrees(bytes, kSaturated32, wide->bytes) ||
        !agrees(offset, kSaturated32, wide->offset))
      fail(ErrorCode::corrupt_file, name, ": the two zip end records contradict each other");
    return *wide;
  }
  if (this_disk != 0 || directory_disk != 0 || entries_here != entries)
    fail(ErrorCode::unsupported, name, ": zip archives of several disks are not understood");
  if (offset > end_record || end_record - offset != bytes)
    fail(ErrorCode::corrupt_file, name, ": the zip directory does not end where its end record begins");
  return {entries, bytes, offset};
}

// The zip64 fields of an extra block: one 64-bit value for each saturated 32-bit field, in a fixed order.
class Zip64Fields {
 public:
  Zip64Fields(std::span<const std::byte> extra, std::string_view name) : fields_({}, name) {
    for (ByteReader in(extra, name); in.remaining() >= 4;) {  // some writers pad with fewer than four bytes
      const auto id = in.little<uint16_t>();
      const auto body = in.take(in.little<uint16_t>());
      if (id == kZip64Extra) fields_ = ByteReader(body, name);
    }
  }
  uint64_t widen(uint32_t narrow) { return narrow == kSaturated32 ? fields_.little<uint64_t>() : narrow; }

 private:
  ByteReader fields_;
};

void refuse_packed(uint16_t method, uint16_t flags, std::string_view entry, std::string_view name) {
  if (flags & (kFlagEncrypted | kFlagStrongEncryption | kFlagMasked))
    fail(ErrorCode::unsupported, name, ": zip entry ", printable(entry), " is encrypted");
  if (method != 0)
    fail(ErrorCode::unsupported, name, ": zip entry ", printable(entry), " is compressed (method ", method,
         "); checkpoints hold stored entries only: save it again without compression");
}

CentralEntry read_central(ByteReader& in) {
  expect_signature(in, kCentralSignature, "zip directory entry");
  CentralEntry entry;
  in.take(4);  // versions
  entry.flags = in.little<uint16_t>();
  const auto method = in.little<uint16_t>();
  in.take(8);  // time, date, check sum
  const auto packed = in.little<uint32_t>(), size = in.little<uint32_t>();
  const auto name_bytes = in.little<uint16_t>(), extra_bytes = in.little<uint16_t>(),
             comment_bytes = in.little<uint16_t>();
  const auto disk = in.little<uint16_t>();
  in.take(6);  // attributes
  const auto local_offset = in.little<uint32_t>();
  entry.name = in.text(name_bytes);
  Zip64Fields wide(in.take(extra_bytes), in.name());
  in.take(comment_bytes);
  refuse_packed(method, entry.flags, entry.name, in.name());
  entry.size = wide.widen(size);
  if (wide.widen(packed) != entry.size)
    fail(ErrorCode::corrupt_file, in.name(), ": zip entry ", printable(entry.name),
         " is stored under another size");
  entry.local_offset = wide.widen(local_offset);
  if (disk != 0)
    fail(ErrorCode::unsupported, in.name(), ": zip archives of several disks are not understood");
  return entry;
}

// Checks the local header against the directory. data_end: where entries must have ended.
Extent read_local(std::span<const std::byte> file, const CentralEntry& entry, uint64_t data_end,
                  std::string_view name) {
  ByteReader in = reader_at(file, entry.local_offset, name);
  expect_signature(in, kLocalSignature, "zip entry");
  in.take(2);  // version
  const auto flags = in.little<uint16_t>(), method = in.little<uint16_t>();
  in.take(8);  // time, date, check sum
  const auto packed = in.little<uint32_t>(), size = in.little<uint32_t>();
  const auto name_bytes = in.little<uint16_t>(), extra_bytes = in.little<uint16_t>();
  const std::string_view local_name = in.text(name_bytes);
  in.take(extra_bytes);
  // An entry written in one go has zeros here: its sizes follow the data. A saturated field means zip64.
  const bool streamed = (flags & kFlagStreamed) != 0;
  const auto agrees = [&](uint32_t local) {
    return local == entry.size || local == kSaturated32 || (streamed && local == 0);
  };
  if (flags != entry.flags || method != 0 || local_name != entry.name || !agrees(packed) || !agrees(size))
    fail(ErrorCode::corrupt_file, name, ": zip entry ", printable(entry.name),
         ": its own header contradicts the directory");
  const uint64_t begin = entry.local_offset + in.position();
  if (begin > data_end || entry.size > data_end - begin)
    fail(ErrorCode::corrupt_file, name, ": zip entry ", printable(entry.name), " reaches beyond the data");
  return {begin, begin + entry.size};
}

void check_disjoint(std::vector<Extent> extents, std::string_view name) {
  std::ranges::sort(extents, {}, &Extent::begin);
  for (size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin < extents[i - 1].end) fail(ErrorCode::corrupt_file, name, ": zip entries overlap");
  }
}

}  // namespace

std::vector<ZipEntry> read_zip_directory(std::span<const std::byte> file, std::string_view name) {
  const Directory directory = read_end(file, name);
  if (directory.entries > kMaxZipEntries)
    fail(ErrorCode::too_large, name, ": ", directory.entries, " zip entries, at most ", kMaxZipEntries,
         " are accepted");
  ByteReader in(file.subspan(static_cast<size_t>(directory.offset), static_cast<size_t>(directory.bytes)),
                name);
  std::vector<ZipEntry> entries;
  std::vector<Extent> extents;
  std::unordered_set<std::string_view> names;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    const CentralEntry central = read_central(in);
    if (!names.insert(central.name).second)
      fail(ErrorCode::corrupt_file, name, ": two zip entries are named ", printable(central.name));
    const Extent data = read_local(file, central, directory.offset, name);
    extents.push_back({central.local_offset, data.end});
    entries.push_back(
        {central.name, file.subspan(static_cast<size_t>(data.begin), static_cast<size_t>(central.size))});
  }
  if (in.remaining() != 0)
    fail(ErrorCode::corrupt_file, name, ": the zip directory holds more than its entries");
  check_disjoint(std::move(extents), name);
  return entries;
}

}  // namespace shoal::weights
