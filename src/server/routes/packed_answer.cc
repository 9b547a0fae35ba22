#include "server/routes/packed_answer.h"

#include <algorithm>

#include "server/routes/request_body.h"

namespace shoal::server {
namespace {

bool contains_ignoring_case(std::string_view text, std::string_view part) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [&](char a, char b) { return lower(a) == b; }) != text.end();
}

}  // namespace

const std::vector<std::string>& body_types() {
  static const std::vector<std::string> types = {"application/json", "application/msgpack",
                                                 "multipart/form-data"};
  return types;
}

const std::vector<std::string>& packed_types() {
  static const std::vector<std::string> types = {"application/json", "application/msgpack"};
  return types;
}

Value body_of(const Request& request) {
  require_body_type(request, body_types());
  const std::string* type = request.headers.find("content-type");
  return read_body(type ? std::string_view(*type) : std::string_view(), request.body);
}

bool wants_json(const Request& request) {
  const std::string_view format = request.parameter("format").value_or("");
  if (format == "json" || format == "application/json") return true;
  if (format == "msgpack" || format == "application/msgpack") return false;
  const std::string* accept = request.headers.find("accept");
  return accept && contains_ignoring_case(*accept, "application/json") &&
         !contains_ignoring_case(*accept, "application/msgpack");
}

Response packed_response(const Request& request, const Value& value, int status) {
  if (wants_json(request))
    return {.status = status, .content_type = "application/json", .body = write_json(value), .headers = {}};
  return {
      .status = status, .content_type = "application/msgpack", .body = write_msgpack(value), .headers = {}};
}

}  // namespace shoal::server
