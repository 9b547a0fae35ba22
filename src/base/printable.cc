#include "base/printable.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace shoal {
namespace {

// Bytes of the UTF-8 sequence that starts `text`, or 0.
size_t sequence_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xed && byte(1) >= 0xa0;
  const bool beyond = lead == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

// Bytes below 0x80 at the start of `text`, in steps of 8: megabytes of base64 pass through here.
size_t ascii_prefix(std::string_view text) {
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t eight;
    std::memcpy(&eight, text.data() + at, 8);
    if (eight & 0x8080808080808080) break;
  }
  return at;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    text.remove_prefix(ascii_prefix(text));
    if (text.empty()) break;
    const size_t bytes = sequence_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string printable(std::string_view text, size_t max_characters) {
  std::string out;
  for (size_t characters = 0; !text.empty(); ++characters) {
    if (characters == max_characters) return out + "...";
    const size_t bytes = sequence_bytes(text);
    const bool control = static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7f;
    out += bytes == 0 || control ? "?" : text.substr(0, bytes);
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return out;
}

}  // namespace shoal
