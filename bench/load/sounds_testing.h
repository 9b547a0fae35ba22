// Sounds and answers as bytes.
#pragma once

#include <cstdint>
#include <string>

namespace shoal::load {

inline std::string little_bytes(uint64_t value, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

// 16-bit samples, all of this value.
inline std::string samples_of(int64_t count, int16_t value = 8000) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) bytes += little_bytes(static_cast<uint16_t>(value), 2);
  return bytes;
}

struct WavHeader {
  uint32_t rate_hz = 24'000;
  uint16_t channels = 1, bits = 16, tag = 1;
  uint32_t data_bytes = 0xFFFF'FFFF;
  uint32_t bytes_per_s = 0;  // 0: the right one

  std::string text() const {
    const uint32_t frame = channels * bits / 8u;
    return "RIFF" + little_bytes(data_bytes, 4) + "WAVEfmt " + little_bytes(16, 4) + little_bytes(tag, 2) +
           little_bytes(channels, 2) + little_bytes(rate_hz, 4) +
           little_bytes(bytes_per_s > 0 ? bytes_per_s : rate_hz * frame, 4) + little_bytes(frame, 2) +
           little_bytes(bits, 2) + "data" + little_bytes(data_bytes, 4);
  }
};

}  // namespace shoal::load
