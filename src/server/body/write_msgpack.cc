// Each value in the shortest form the specification has for it; numbers that are not integers as float 64.
#include <bit>
#include <limits>

#include "base/printable.h"
#include "server/body/value.h"

namespace shoal::server {
namespace {

// Type bytes of one family by the width of the length or value that follows; a `tiny` one holds it itself.
struct Family {
  unsigned tiny, tiny_limit;                 // none: limit 0
  unsigned one_byte, two_bytes, four_bytes;  // one_byte 0: none
};
constexpr Family kText = {0xa0, 32, 0xd9, 0xda, 0xdb};
constexpr Family kBytes = {0, 0, 0xc4, 0xc5, 0xc6};
constexpr Family kArray = {0x90, 16, 0, 0xdc, 0xdd};
constexpr Family kObject = {0x80, 16, 0, 0xde, 0xdf};

class MsgpackWriter {
 public:
  void operator()(std::nullptr_t) { put(0xc0); }
  void operator()(bool value) { put(value ? 0xc3 : 0xc2); }
  void operator()(int64_t value) { value < 0 ? write_negative(value) : write_positive(value); }
  void operator()(double value) {
    put(0xcb);
    put_wide(std::bit_cast<uint64_t>(value), 8);
  }
  void operator()(const std::string& text) {
    CHECK(is_utf8(text), "a text of ", text.size(), " bytes");
    write_length(kText, text.size());
    out_ += text;
  }
  void operator()(const Bytes& bytes) {
    write_length(kBytes, bytes.data.size());
    out_ += bytes.data;
  }
  void operator()(const Value::Array& array) {
    write_length(kArray, array.size());
    for (const Value& value : array) std::visit(*this, value.data);
  }
  void operator()(const Value::Object& object) {
    write_length(kObject, object.size());
    for (const auto& [name, value] : object) {
      (*this)(name);
      std::visit(*this, value.data);
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void put(unsigned byte) { out_ += static_cast<char>(byte); }
  void put_wide(uint64_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) put(value >> shift & 0xff);
  }

  void write_positive(int64_t value) {
    if (value < 0x80) return put(static_cast<unsigned>(value));
    const int bytes = value <= 0xff ? 1 : value <= 0xffff ? 2 : value <= 0xffffffff ? 4 : 8;
    put(0xccu + static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(bytes))));
    put_wide(static_cast<uint64_t>(value), bytes);
  }

  void write_negative(int64_t value) {
    if (value >= -32) return put(static_cast<unsigned>(value & 0xff));
    const int bytes = value >= INT8_MIN ? 1 : value >= INT16_MIN ? 2 : value >= INT32_MIN ? 4 : 8;
    put(0xd0u + static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(bytes))));
    put_wide(static_cast<uint64_t>(value), bytes);
  }

  void write_length(const Family& family, size_t length) {
    CHECK(length <= std::numeric_limits<uint32_t>::max(), "a length of ", length);
    if (length < family.tiny_limit) return put(family.tiny | static_cast<unsigned>(length));
    const int bytes = family.one_byte && length <= 0xff ? 1 : length <= 0xffff ? 2 : 4;
    put(bytes == 1 ? family.one_byte : bytes == 2 ? family.two_bytes : family.four_bytes);
    put_wide(length, bytes);
  }

  std::string out_;
};

}  // namespace

std::string write_msgpack(const Value& value) {
  MsgpackWriter writer;
  std::visit(writer, value.data);
  return writer.take();
}

}  // namespace shoal::server
