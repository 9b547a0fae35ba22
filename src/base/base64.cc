#include "base/base64.h"

#include <array>
#include <cstdint>

namespace shoal {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kSpace = 64, kPadding = 65, kForeign = 66;

constexpr std::array<uint8_t, 256> meanings() {
  std::array<uint8_t, 256> table{};
  table.fill(kForeign);
  const auto at = [&](char c) -> uint8_t& { return table[static_cast<unsigned char>(c)]; };
  for (size_t i = 0; i < kAlphabet.size(); ++i) at(kAlphabet[i]) = static_cast<uint8_t>(i);
  at('-') = 62, at('_') = 63;
  for (const char space : {' ', '\t', '\n', '\r', '\f', '\v'}) at(space) = kSpace;
  at('=') = kPadding;
  return table;
}
constexpr std::array<uint8_t, 256> kMeanings = meanings();

// Drops a prefix "data:audio/wav;base64,".
std::string_view without_data_url(std::string_view text) {
  if (!text.starts_with("data:")) return text;
  const size_t comma = text.find(',');
  const bool base64 = comma != std::string_view::npos && text.substr(0, comma).ends_with(";base64");
  return base64 ? text.substr(comma + 1) : text;
}

}  // namespace

void append_base64(std::string& out, std::string_view bytes) {
  out.reserve(out.size() + base64_size(bytes.size()));
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const auto byte = [&](size_t i) -> uint32_t {
      return at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0;
    };
    const uint32_t bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    out += kAlphabet[bits >> 18];
    out += kAlphabet[bits >> 12 & 63];
    out += at + 1 < bytes.size() ? kAlphabet[bits >> 6 & 63] : '=';
    out += at + 2 < bytes.size() ? kAlphabet[bits & 63] : '=';
  }
}

std::string to_base64(std::string_view bytes) {
  std::string out;
  append_base64(out, bytes);
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  text = without_data_url(text);
  std::string out;
  out.reserve(text.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  size_t digits = 0, padding = 0;
  for (const char c : text) {
    const uint8_t meaning = kMeanings[static_cast<unsigned char>(c)];
    if (meaning == kSpace) continue;
    if (meaning == kForeign || (padding && meaning != kPadding)) return std::nullopt;
    if (meaning == kPadding) {
      ++padding;
      continue;
    }
    bits = bits << 6 | meaning;
    if (++digits % 4 != 0) continue;
    for (const int shift : {16, 8, 0}) out += static_cast<char>(bits >> shift & 0xff);
  }
  const size_t rest = digits % 4;
  const bool padded_right = padding == 0 || (rest >= 2 && rest + padding == 4);
  if (rest == 1 || !padded_right) return std::nullopt;
  if (rest == 2) out += static_cast<char>(bits >> 4 & 0xff);
  if (rest == 3) {
    out += static_cast<char>(bits >> 10 & 0xff);
    out += static_cast<char>(bits >> 2 & 0xff);
  }
  return out;
}

}  // namespace shoal
