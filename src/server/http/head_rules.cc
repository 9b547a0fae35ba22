#include "server/http/head_rules.h"

#include <algorithm>

#include "base/error.h"
#include "base/percent.h"

namespace shoal::server {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

int count(const Headers& headers, std::string_view name) {
  return static_cast<int>(std::ranges::count_if(
      headers, [&](const auto& field) { return equal_ignoring_case(field.first, name); }));
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Characters of a name, an IPv4 or [IPv6] address and a port (RFC 3986 3.2.2).
bool is_host(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return is_digit(c) || is_letter(c) ||
           std::string_view("-._~!$&'()*+,;=%:[]").find(c) != std::string_view::npos;
  });
}

std::optional<Refusal> check_host(const Request& request, int version) {
  const int hosts = count(request.headers, "host");
  if (hosts > 1) return Refusal{400, "the request has more than one Host field"};
  if (hosts == 0) {
    if (version >= 11) return Refusal{400, "the request has no Host field, which HTTP/1.1 demands"};
    return std::nullopt;
  }
  if (!is_host(*request.headers.find("host"))) return Refusal{400, "Host is no name or address"};
  return std::nullopt;
}

std::optional<Refusal> check_length(const Request& request) {
  const int lengths = count(request.headers, "content-length");
  if (lengths > 1) return Refusal{400, "the request has more than one Content-Length"};
  if (lengths == 0) return std::nullopt;
  const std::string& length = *request.headers.find("content-length");
  if (length.empty() || length.size() > 18 || !std::ranges::all_of(length, is_digit))
    return Refusal{400, "Content-Length is no number of bytes"};
  return std::nullopt;
}

std::optional<Refusal> check_transfer_encoding(const Request& request, int version) {
  const int codings = count(request.headers, "transfer-encoding");
  if (codings == 0) return std::nullopt;
  if (version < 11) return Refusal{400, "Transfer-Encoding is unknown to HTTP/1.0"};
  if (codings > 1) return Refusal{400, "the request has more than one Transfer-Encoding"};
  if (count(request.headers, "content-length") > 0)
    return Refusal{400, "the request has both Transfer-Encoding and Content-Length"};
  if (!equal_ignoring_case(*request.headers.find("transfer-encoding"), "chunked"))
    return Refusal{501, "Transfer-Encoding must be exactly \"chunked\", nothing else is understood"};
  return std::nullopt;
}

std::optional<Refusal> check_expect(const Request& request) {
  for (const auto& [name, value] : request.headers)
    if (equal_ignoring_case(name, "expect") && !equal_ignoring_case(value, "100-continue"))
      return Refusal{417, "Expect must be \"100-continue\", nothing else is understood"};
  return std::nullopt;
}

std::optional<Refusal> decode_query(std::string_view text, Request& request) {
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    auto key = percent_decoded(pair.substr(0, equals), true);
    auto value = percent_decoded(pair.substr(std::min(pair.size(), equals + 1)), true);
    if (!key || !value) return Refusal{400, "the query has a broken %-escape or a NUL"};
    request.query.emplace_back(std::move(*key), std::move(*value));
  }
  return std::nullopt;
}

// "http://host/path" -> "/path": the form that proxies are sent, and that every server must take (RFC
// 9112 3.2.2).
std::string_view without_authority(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equal_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    return target.substr(std::min(target.find_first_of("/?"), target.size()));
  }
  return target;
}

}  // namespace

bool has_token(const Headers& headers, std::string_view name, std::string_view token) {
  for (const auto& [field, value] : headers) {
    if (!equal_ignoring_case(field, name)) continue;
    std::string_view list = value;
    while (!list.empty()) {
      const std::string_view item = list.substr(0, list.find(','));
      if (equal_ignoring_case(trimmed(item), token)) return true;
      list.remove_prefix(std::min(list.size(), item.size() + 1));
    }
  }
  return false;
}

std::optional<Refusal> check_head(const Request& request, int version) {
  if (auto refusal = check_host(request, version)) return refusal;
  if (auto refusal = check_transfer_encoding(request, version)) return refusal;
  if (auto refusal = check_length(request)) return refusal;
  return check_expect(request);
}

std::optional<Refusal> decode_target(std::string_view target, Request& request) {
  if (target == "*" && request.method == "OPTIONS") {
    request.path = "*";
    return std::nullopt;
  }
  if (request.method == "CONNECT") return Refusal{501, "CONNECT is not understood: this is no proxy"};
  const std::string_view local = without_authority(target);
  const size_t question = std::min(local.find('?'), local.size());
  std::string_view path = local.substr(0, question);
  if (local.size() < target.size() && path.empty()) path = "/";
  if (!path.starts_with('/') || target.find('#') != std::string_view::npos)
    return Refusal{400, "the target of the request must be a path that begins with /"};
  auto decoded = percent_decoded(path, false);
  if (!decoded) return Refusal{400, "the path has a broken %-escape or a NUL"};
  request.path = std::move(*decoded);
  return decode_query(local.substr(std::min(local.size(), question + 1)), request);
}

std::optional<Refusal> check_websocket(const Request& request) {
  const std::string* version = request.headers.find("sec-websocket-version");
  if (version == nullptr || *version != "13") return Refusal{426, "Sec-WebSocket-Version must be 13"};
  const std::string* key = request.headers.find("sec-websocket-key");
  // 16 bytes in base64.
  if (key == nullptr || count(request.headers, "sec-websocket-key") > 1 || key->size() != 24 ||
      !key->ends_with("=="))
    return Refusal{400, "Sec-WebSocket-Key must be given once, 16 bytes in base64"};
  if (request.headers.find("transfer-encoding") != nullptr) return Refusal{400, "an upgrade has no body"};
  const std::string* length = request.headers.find("content-length");
  if (length != nullptr && *length != "0") return Refusal{400, "an upgrade has no body"};
  return std::nullopt;
}

}  // namespace shoal::server
