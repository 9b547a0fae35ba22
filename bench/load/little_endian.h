// Numbers in the order of WAV files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::load {

// The number in `count` bytes, at most 4, of `bytes` from `at` on.
inline uint32_t little_endian(std::string_view bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

// The lowest `count` bytes of `value`.
inline std::string little_endian(uint64_t value, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

}  // namespace shoal::load
