#include "server/routes/unknown_name.h"

#include <algorithm>

#include "base/nearest.h"
#include "base/printable.h"

namespace shoal::server {
namespace {

constexpr size_t kMaxShown = 60;  // characters of a foreign name in a message

// The text between the quotation mark at or after `at` and the next one.
std::optional<std::string> quoted_at(const std::string& message, size_t at) {
  const size_t open = message.find('"', at);
  const size_t close = open == std::string::npos ? open : message.find('"', open + 1);
  if (close == std::string::npos) return std::nullopt;
  return message.substr(open + 1, close - open - 1);
}

}  // namespace

std::string none_called(std::string_view wanted, std::span<const std::string> names, std::string_view see) {
  std::string told = concat("there is none called \"", printable(wanted, kMaxShown), '"');
  if (!names.empty()) {
    const std::string_view nearest = nearest_name(wanted, names);
    // Farther away it is another name.
    const int near = std::max(1, static_cast<int>(std::min(wanted.size(), nearest.size()) / 2));
    if (edit_distance(wanted.substr(0, kMaxShown), nearest.substr(0, kMaxShown)) <= near)
      told += concat("; the nearest is \"", nearest, '"');
  }
  return see.empty() ? told : concat(told, "; see ", see);
}

std::optional<std::string> unknown_voice_of(const Error& error) {
  const std::string& message = error.message();
  if (error.code() != ErrorCode::not_found || !message.starts_with("voice \"")) return std::nullopt;
  constexpr std::string_view kPart = "there is no voice \"";  // of a mix
  const size_t part = message.find(kPart);
  return quoted_at(message, part == std::string::npos ? 0 : part);
}

}  // namespace shoal::server
