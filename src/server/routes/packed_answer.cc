#include "server/routes/packed_answer.h"

#include <algorithm>

#include "server/routes/request_body.h"

namespace shoal::server {
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

bool accepts(const Request& request, std::string_view media_type) {
  const std::string* accept = request.headers.find("accept");
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  const auto same = [&](char a, char b) { return lower(a) == b; };
  return accept && std::search(accept->begin(), accept->end(), media_type.begin(), media_type.end(), same) !=
                       accept->end();
}

bool wants_json(const Request& request) {
  const std::string_view format = request.parameter("format").value_or("");
  if (format == "json" || format == "application/json") return true;
  if (format == "msgpack" || format == "application/msgpack") return false;
  return accepts(request, "application/json") && !accepts(request, "application/msgpack");
}

Response packed_response(const Request& request, const Value& value, int status) {
  if (wants_json(request))
    return {.status = status, .content_type = "application/json", .body = write_json(value), .headers = {}};
  return {
      .status = status, .content_type = "application/msgpack", .body = write_msgpack(value), .headers = {}};
}

}  // namespace shoal::server
