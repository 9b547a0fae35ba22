// The MessagePack specification, github.com/msgpack/msgpack/blob/master/spec.md. Its lengths are claims:
// nothing is allocated for a length before its bytes have arrived.
#include <bit>
#include <cmath>

#include "base/printable.h"
#include "server/body/place.h"
#include "server/body/value.h"

namespace shoal::server {
namespace {

class MsgpackReader {
 public:
  explicit MsgpackReader(std::string_view body) : body_(body) {}

  Value read() {
    const Place root;
    Value value = read_value(root);
    if (at_ < body_.size())
      fail_in(root, "expected the end of the MessagePack at byte ", at_, ", found ", left(), " bytes more");
    return value;
  }

 private:
  uint64_t left() const { return body_.size() - at_; }

  std::string_view take(const Place& place, uint64_t bytes) {
    if (bytes > left()) {
      fail_in(place, "not MessagePack: expected ", bytes, " bytes at byte ", at_, ", found ", left());
    }
    const std::string_view taken = body_.substr(at_, bytes);
    at_ += bytes;
    return taken;
  }

  // The next T, most significant byte first.
  template <typename T>
  T take_number(const Place& place) {
    uint64_t bits = 0;
    for (const char byte : take(place, sizeof(T))) bits = bits << 8 | static_cast<unsigned char>(byte);
    return static_cast<T>(bits);
  }

  Value read_value(const Place& place) {
    limits_.count_value(place);
    const size_t start = at_;
    const auto type = take_number<uint8_t>(place);
    if (type <= 0x7f) return {int64_t{type}};
    if (type <= 0x8f) return {read_object(place, type & 0x0f)};
    if (type <= 0x9f) return {read_array(place, type & 0x0f)};
    if (type <= 0xbf) return {read_text(place, type & 0x1f)};
    if (type >= 0xe0) return {int64_t{static_cast<int8_t>(type)}};
    switch (type) {
      case 0xc0:
        return {};
      case 0xc2:
        return {false};
      case 0xc3:
        return {true};
      case 0xc4:
        return {read_bytes(place, take_number<uint8_t>(place))};
      case 0xc5:
        return {read_bytes(place, take_number<uint16_t>(place))};
      case 0xc6:
        return {read_bytes(place, take_number<uint32_t>(place))};
      case 0xca:
        return finite(place, std::bit_cast<float>(take_number<uint32_t>(place)));
      case 0xcb:
        return finite(place, std::bit_cast<double>(take_number<uint64_t>(place)));
      case 0xcc:
        return {int64_t{take_number<uint8_t>(place)}};
      case 0xcd:
        return {int64_t{take_number<uint16_t>(place)}};
      case 0xce:
        return {int64_t{take_number<uint32_t>(place)}};
      case 0xcf:
        return signed_integer(place, take_number<uint64_t>(place));
      case 0xd0:
        return {int64_t{take_number<int8_t>(place)}};
      case 0xd1:
        return {int64_t{take_number<int16_t>(place)}};
      case 0xd2:
        return {int64_t{take_number<int32_t>(place)}};
      case 0xd3:
        return {take_number<int64_t>(place)};
      case 0xd9:
        return {read_text(place, take_number<uint8_t>(place))};
      case 0xda:
        return {read_text(place, take_number<uint16_t>(place))};
      case 0xdb:
        return {read_text(place, take_number<uint32_t>(place))};
      case 0xdc:
        return {read_array(place, take_number<uint16_t>(place))};
      case 0xdd:
        return {read_array(place, take_number<uint32_t>(place))};
      case 0xde:
        return {read_object(place, take_number<uint16_t>(place))};
      case 0xdf:
        return {read_object(place, take_number<uint32_t>(place))};
      case 0xc1:
        fail_in(place, "not MessagePack: byte ", start, " is 0xc1, which no value begins with");
      default:
        fail_in(place, "expected no extension type, found one at byte ", start);
    }
  }

  static Value finite(const Place& place, double value) {
    if (!std::isfinite(value)) fail_in(place, "expected a finite number, found ", value);
    return {value};
  }

  static Value signed_integer(const Place& place, uint64_t value) {
    if (value > static_cast<uint64_t>(INT64_MAX))
      fail_in(place, "expected an integer that 64 bits with a sign hold, found ", value);
    return {static_cast<int64_t>(value)};
  }

  Bytes read_bytes(const Place& place, uint32_t length) { return {std::string(take(place, length))}; }

  std::string read_text(const Place& place, uint32_t length) {
    const size_t start = at_;
    const std::string_view text = take(place, length);
    if (!is_utf8(text)) fail_in(place, "expected UTF-8, found other bytes in the text at byte ", start);
    return std::string(text);
  }

  std::string read_name(const Place& place) {
    const size_t start = at_;
    const auto type = take_number<uint8_t>(place);
    if (type >= 0xa0 && type <= 0xbf) return read_text(place, type & 0x1f);
    if (type == 0xd9) return read_text(place, take_number<uint8_t>(place));
    if (type == 0xda) return read_text(place, take_number<uint16_t>(place));
    if (type == 0xdb) return read_text(place, take_number<uint32_t>(place));
    fail_in(place, "expected a text as a name at byte ", start, ", found another type");
  }

  // Each item has a byte at least. No reserve: nested arrays could each claim all that is left.
  Value::Array read_array(const Place& place, uint64_t length) {
    TreeLimits::check_depth(place);
    check_claim(place, length, length);
    Value::Array array;
    while (array.size() < length) array.push_back(read_value(place.item(array.size())));
    return array;
  }

  Value::Object read_object(const Place& place, uint64_t length) {
    TreeLimits::check_depth(place);
    check_claim(place, length, 2 * length);
    Value::Object object;
    while (object.size() < length) {
      std::string name = read_name(place);
      Value value = read_value(place.member(name));
      object.emplace_back(std::move(name), std::move(value));
    }
    TreeLimits::check_names(object, place);
    return object;
  }

  void check_claim(const Place& place, uint64_t length, uint64_t bytes) const {
    if (bytes > left())
      fail_in(place, "not MessagePack: ", length, " items do not fit into the ", left(), " bytes at byte ",
              at_);
  }

  std::string_view body_;
  size_t at_ = 0;
  TreeLimits limits_;
};

}  // namespace

Value read_msgpack(std::string_view body) { return MsgpackReader(body).read(); }

}  // namespace shoal::server
