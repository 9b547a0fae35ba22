#include "bench/load/url.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/printable.h"

namespace shoal::load {
namespace {

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  fail(ErrorCode::invalid_argument, "url: expected http://HOST[:PORT][/PATH] or https://..., got \"",
       printable(text), "\": ", why);
}

bool is_port(std::string_view text) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size() && value >= 1 && value <= 65'535;
}

}  // namespace

std::string Url::authority() const {
  const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port == (tls ? "443" : "80") ? name : name + ":" + port;
}

std::string Url::text() const { return (tls ? "https://" : "http://") + authority() + path; }

Url parse_url(std::string_view text) {
  Url url;
  std::string_view rest = text;
  if (rest.starts_with("https://"))
    url.tls = true, rest.remove_prefix(8);
  else if (rest.starts_with("http://"))
    rest.remove_prefix(7);
  else
    refuse(text, "the scheme is missing");
  // A control character or a space would break the request line.
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c <= ' ' || c >= 0x7F; }))
    refuse(text, "a blank or a character that is not ASCII");
  rest = rest.substr(0, rest.find('#'));
  const size_t slash = std::min(rest.find_first_of("/?"), rest.size());
  url.path = rest.substr(slash);
  if (url.path.starts_with('?')) url.path = "/" + url.path;
  rest = rest.substr(0, slash);
  if (rest.find('@') != std::string_view::npos) refuse(text, "a password; use --header or --api-key");
  if (rest.starts_with('[')) {
    const size_t end = rest.find(']');
    if (end == std::string_view::npos) refuse(text, "a bracket is open");
    url.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
  } else {
    const size_t colon = std::min(rest.find(':'), rest.size());
    url.host = rest.substr(0, colon);
    rest.remove_prefix(colon);
  }
  if (url.host.empty()) refuse(text, "the host is missing");
  url.port = url.tls ? "443" : "80";
  if (rest.empty()) return url;
  if (!rest.starts_with(':') || !is_port(rest.substr(1)))
    refuse(text, "the port is not a number up to 65535");
  url.port = rest.substr(1);
  return url;
}

}  // namespace shoal::load
