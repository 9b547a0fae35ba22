// How the server and shoal-phonemizer talk, over the helper's standard input and output.
//
//   message  = u32 length of what follows, u8 kind, strings      (little-endian)
//   string   = u32 length, bytes
//   request  = kind 0: the language (espeak-ng's name), then texts
//   answer   = kind 0: one string of IPA per text; kind 1, 2: one string that says what is wrong
// At its start the helper sends one answer by itself: espeak-ng's version, or why it cannot work.
//
// The helper includes this header and nothing else of the library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::phonemes {

enum class MessageKind : uint8_t { ok = 0, no_such_language = 1, failed = 2 };

// In both directions; the helper ends when it receives more.
inline constexpr uint32_t kMaxMessageBytes = 1u << 20;
inline constexpr uint32_t kLengthBytes = 4;

struct Message {
  MessageKind kind = MessageKind::ok;
  std::vector<std::string> strings;
};

inline void append_length(std::string& out, size_t length) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(length >> shift & 0xFF);
}
inline uint32_t read_length(std::string_view bytes) {
  uint32_t length = 0;
  for (int i = 0; i < 4; ++i) length |= uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return length;
}

// The whole message, starting with its length.
inline std::string pack(const Message& message) {
  std::string body(1, static_cast<char>(message.kind));
  for (const std::string& part : message.strings) {
    append_length(body, part.size());
    body += part;
  }
  std::string out;
  append_length(out, body.size());
  return out += body;
}

// Parses the part after the length; nothing if the bytes are inconsistent.
inline std::optional<Message> unpack(std::string_view body) {
  if (body.empty() || static_cast<unsigned char>(body[0]) > 2) return std::nullopt;
  Message message{static_cast<MessageKind>(body[0]), {}};
  body.remove_prefix(1);
  while (!body.empty()) {
    if (body.size() < kLengthBytes) return std::nullopt;
    const uint32_t length = read_length(body);
    body.remove_prefix(kLengthBytes);
    if (length > body.size()) return std::nullopt;
    message.strings.emplace_back(body.substr(0, length));
    body.remove_prefix(length);
  }
  return message;
}

}  // namespace shoal::phonemes
