#include "weights/torch_writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "weights/pickle_allowlist.h"

namespace shoal::weights {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

constexpr int64_t kMostElements = int64_t{1} << 28;
constexpr size_t kAlignment = 64;  // of an entry's bytes: readers map them
constexpr const char* kFolder = "tensor/";

template <typename T>
std::string little(T value) {
  std::string text;
  for (size_t i = 0; i < sizeof(T); ++i)
    text += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xff);
  return text;
}

// CRC-32 of zip (ISO 3309).
uint32_t check_sum(std::string_view bytes) {
  static constexpr auto kCrcTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      table[i] = i;
      for (int bit = 0; bit < 8; ++bit) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xEDB88320u : 0);
    }
    return table;
  }();
  uint32_t sum = ~0u;
  for (const char c : bytes) sum = sum >> 8 ^ kCrcTable[(sum ^ static_cast<uint8_t>(c)) & 0xff];
  return ~sum;
}

// A zip archive of stored entries, each aligned.
class StoredArchive {
 public:
  void add(const std::string& name, std::string_view data) {
    const std::string header =
        concat(little<uint16_t>(0), little<uint16_t>(0), std::string(4, '\0'), little(check_sum(data)),
               little(static_cast<uint32_t>(data.size())), little(static_cast<uint32_t>(data.size())),
               little(static_cast<uint16_t>(name.size())));
    directory_ += concat("PK\x01\x02", little<uint16_t>(0), little<uint16_t>(0), header,
                         std::string(12, '\0'), little(static_cast<uint32_t>(file_.size())), name);
    const std::string extra = padding(file_.size() + 30 + name.size());
    file_ += concat("PK\x03\x04", little<uint16_t>(0), header, little(static_cast<uint16_t>(extra.size())),
                    name, extra, data);
    ++entries_;
  }

  std::string finish() && {
    const auto offset = static_cast<uint32_t>(file_.size());
    file_ += concat(directory_, "PK\x05\x06", std::string(4, '\0'), little(entries_), little(entries_),
                    little(static_cast<uint32_t>(directory_.size())), little(offset), little<uint16_t>(0));
    return std::move(file_);
  }

 private:
  // An extra field "FB", as torch has it, after which the data is aligned.
  static std::string padding(size_t at) {
    const size_t bytes = (kAlignment - (at + 4) % kAlignment) % kAlignment;
    return concat("FB", little(static_cast<uint16_t>(bytes)), std::string(bytes, 'Z'));
  }

  std::string file_, directory_;
  uint16_t entries_ = 0;
};

// Values and containers as Python's pickler writes them in protocol 2, each remembered under the next number.
class PickleWriter {
 public:
  PickleWriter() { text_ = {static_cast<char>(kProto), 2}; }
  PickleWriter& op(Opcode code) {
    text_ += static_cast<char>(code);
    return *this;
  }
  PickleWriter& remembered() { return op(kBinPut).byte(memo_++); }
  PickleWriter& global(std::string_view module, std::string_view name) {
    op(kGlobal).text_ += concat(module, "\n", name, "\n");
    return remembered();
  }
  PickleWriter& text(std::string_view value) {
    op(kBinUnicode).text_ += concat(little(static_cast<uint32_t>(value.size())), value);
    return remembered();
  }
  PickleWriter& integer(int64_t value) {
    if (value < 0x100) return op(kBinInt1).byte(static_cast<uint8_t>(value));
    if (value < 0x10000) {
      op(kBinInt2).text_ += little(static_cast<uint16_t>(value));
      return *this;
    }
    op(kBinInt).text_ += little(static_cast<uint32_t>(value));
    return *this;
  }
  PickleWriter& tuple(std::span<const int64_t> values) {
    static constexpr std::array kTuples = {kEmptyTuple, kTuple1, kTuple2, kTuple3};
    if (values.size() >= kTuples.size()) op(kMark);
    for (const int64_t value : values) integer(value);
    op(values.size() < kTuples.size() ? kTuples[values.size()] : kTuple);
    return values.empty() ? *this : remembered();
  }
  std::string take() && { return std::move(text_); }

 private:
  PickleWriter& byte(uint8_t value) {
    text_ += static_cast<char>(value);
    return *this;
  }

  std::string text_;
  uint8_t memo_ = 0;
};

std::vector<int64_t> contiguous_strides(const Shape& shape) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()));
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<size_t>(axis)] = stride;
    stride *= std::max<int64_t>(shape[axis], 1);
  }
  return strides;
}

std::string pickle_of(const Shape& shape) {
  PickleWriter pickle;
  pickle.global("torch._utils", "_rebuild_tensor_v2").op(kMark);
  pickle.op(kMark).text("storage").global("torch", "FloatStorage").text("0").text("cpu");
  pickle.integer(shape.elements()).op(kTuple).remembered().op(kBinPersId);
  pickle.integer(0).tuple(shape.dims()).tuple(contiguous_strides(shape)).op(kNewFalse);
  pickle.global("collections", "OrderedDict").op(kEmptyTuple).op(kReduce).remembered();
  pickle.op(kTuple).remembered().op(kReduce).remembered().op(kStop);
  return std::move(pickle).take();
}

}  // namespace

std::string write_torch_tensor(std::span<const float> values, const Shape& shape) {
  CHECK(shape.elements() == std::ssize(values) && std::ssize(values) <= kMostElements, values.size(),
        " values for a tensor of ", shape.elements());
  StoredArchive archive;
  archive.add(concat(kFolder, "data.pkl"), pickle_of(shape));
  archive.add(concat(kFolder, "byteorder"), "little");
  archive.add(concat(kFolder, "data/0"),
              {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  archive.add(concat(kFolder, "version"), "3\n");
  return std::move(archive).finish();
}

}  // namespace shoal::weights
