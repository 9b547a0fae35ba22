#include "server/http/response_head.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/error.h"

namespace shoal::server {
namespace {

bool is_token(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

void append_field(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ").append(value).append("\r\n");
}

void append_checked(std::string& head, std::string_view name, std::string_view value) {
  if (!is_token(name) || !is_field_value(value))
    fail(ErrorCode::internal, "answer: field \"", is_token(name) ? name : "(no token)",
         "\" would break the head");
  append_field(head, name, value);
}

// Names of days and months are English in every locale (RFC 9110 5.6.7).
std::string http_date(std::time_t now) {
  static constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm t{};
  gmtime_r(&now, &t);
  std::array<char, 64> text;
  const int size = std::snprintf(
      text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT", kDays[static_cast<size_t>(t.tm_wday)],
      t.tm_mday, kMonths[static_cast<size_t>(t.tm_mon)], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
  return std::string(text.data(), static_cast<size_t>(size));
}

bool belongs_to_framing(std::string_view name) {
  return std::ranges::any_of(
      std::array{"content-type", "content-length", "transfer-encoding", "connection", "date"},
      [&](const char* own) { return equal_ignoring_case(name, own); });
}

}  // namespace

bool status_has_body(int status) { return status != 204 && status != 304; }

bool is_field_value(std::string_view value) {
  return std::ranges::all_of(
      value, [](char c) { return (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) || c == '\t'; });
}

std::string response_head(const Response& response, const AnswerFraming& framing, std::time_t now) {
  if (response.status < 200 || response.status > 599)
    fail(ErrorCode::internal, "answer: status must be 200 to 599, got ", response.status);
  std::string head = concat("HTTP/1.1 ", response.status, ' ', phrase_of(response.status), "\r\n");
  append_field(head, "Date", http_date(now));
  if (!response.content_type.empty()) append_checked(head, "Content-Type", response.content_type);
  if (status_has_body(response.status)) {
    if (framing.end == BodyEnd::length)
      append_field(head, "Content-Length", std::to_string(response.body.size()));
    if (framing.end == BodyEnd::chunked) append_field(head, "Transfer-Encoding", "chunked");
  }
  if (!framing.keep_alive) append_field(head, "Connection", "close");
  if (framing.keep_alive && framing.http_1_0) append_field(head, "Connection", "keep-alive");
  for (const auto& [name, value] : response.headers) {
    if (belongs_to_framing(name))
      fail(ErrorCode::internal, "answer: field ", name, " is the transport's to set");
    append_checked(head, name, value);
  }
  return head.append("\r\n");
}

}  // namespace shoal::server
