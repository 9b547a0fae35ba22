// A cursor over foreign bytes: every read is checked against the end.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"

namespace shoal::weights {

// `name` is for messages and must outlive the reader. Reads throw Error(corrupt_file) when the bytes run out.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }
  std::string_view name() const { return name_; }

  std::span<const std::byte> take(uint64_t count) {
    if (count > remaining())
      fail(ErrorCode::corrupt_file, name_, ": cut short: ", count, " bytes expected at byte ", position_,
           ", found ", remaining());
    const auto part = bytes_.subspan(position_, static_cast<size_t>(count));
    position_ += part.size();
    return part;
  }

  std::string_view text(uint64_t count) {
    const auto part = take(count);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }

  // A little-endian unsigned integer.
  template <std::unsigned_integral T>
  T little() {
    T value = 0;
    const auto part = take(sizeof(T));
    for (size_t i = 0; i < sizeof(T); ++i)
      value = static_cast<T>(value | std::to_integer<T>(part[i]) << (8 * i));
    return value;
  }

  // The text before the next '\n', which is consumed too; at most max_bytes long.
  std::string_view line(size_t max_bytes) {
    const auto rest = bytes_.subspan(position_);
    for (size_t length = 0; length < rest.size() && length <= max_bytes; ++length) {
      if (rest[length] == std::byte{'\n'}) return text(length + 1).substr(0, length);
    }
    fail(ErrorCode::corrupt_file, name_, ": no line end within ", max_bytes, " bytes of byte ", position_);
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view name_;
  size_t position_ = 0;
};

}  // namespace shoal::weights
