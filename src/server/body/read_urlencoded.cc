// application/x-www-form-urlencoded (WHATWG URL 5.1), except that a % without two digits is refused.
#include <charconv>

#include "server/body/form_fields.h"

namespace shoal::server {
namespace {

std::string decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out += text[at] == '+' ? ' ' : text[at];
      continue;
    }
    unsigned byte = 0;
    const std::string_view digits = text.substr(at + 1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (error != std::errc{} || end != digits.data() + 2)
      throw BodyError(ErrorCode::invalid_argument, "",
                      "expected two hexadecimal digits after each % of the form");
    out += static_cast<char>(byte);
    at += 2;
  }
  return out;
}

}  // namespace

Value read_urlencoded(std::string_view body) {
  Value::Object form;
  while (!body.empty()) {
    const std::string_view pair = body.substr(0, body.find('&'));
    body.remove_prefix(std::min(pair.size() + 1, body.size()));
    if (pair.empty()) continue;
    const std::string_view name = pair.substr(0, pair.find('='));
    const std::string_view value = pair.substr(std::min(name.size() + 1, pair.size()));
    add_form_field(form, decoded(name), {decoded(value)});
  }
  return {std::move(form)};
}

}  // namespace shoal::server
