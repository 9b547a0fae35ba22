#include "server/observe/log_line.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/printable.h"

namespace shoal::server {
namespace {

constexpr size_t kMostMessageBytes = 4096, kMostFieldBytes = 256;

// At most this many bytes, not ending inside a character.
std::string cut(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80 && most - end < 3) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string json_text(std::string_view text, size_t most) {
  return nlohmann::json(cut(text, most)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string plain_text(std::string_view text, size_t most) { return printable(cut(text, most), most + 3); }

std::string number_text(double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.3f", value);
  return digits;
}

std::string value_text(LogFormat format, const LogField& field) {
  if (const auto* text = std::get_if<std::string_view>(&field.value))
    return format == LogFormat::json ? json_text(*text, kMostFieldBytes) : log_word(*text);
  if (const auto* number = std::get_if<uint64_t>(&field.value)) return std::to_string(*number);
  if (const auto* number = std::get_if<double>(&field.value)) return number_text(*number);
  return std::get<bool>(field.value) ? "true" : "false";
}

}  // namespace

std::string log_word(std::string_view text) {
  std::string plain = plain_text(text, kMostFieldBytes);
  if (!plain.empty() && plain.find_first_of(" =\"") == std::string::npos) return plain;
  return json_text(plain, plain.size());
}

std::string log_line(LogFormat format, std::string_view message, const std::vector<LogField>& fields) {
  const bool json = format == LogFormat::json;
  std::string line =
      json ? "\"message\":" + json_text(message, kMostMessageBytes) : plain_text(message, kMostMessageBytes);
  for (const LogField& field : fields) {
    const auto* text = std::get_if<std::string_view>(&field.value);
    if (!json && text && text->empty()) continue;
    line += json ? ",\"" : " ";
    line += field.name;
    line += json ? "\":" : "=";
    line += value_text(format, field);
  }
  return line;
}

}  // namespace shoal::server
