#include "server/routes/packed_answer.h"

#include "server/body/media_type.h"
#include "server/routes/request_body.h"

namespace shoal::server {

const std::vector<std::string>& packed_types() {
  static const std::vector<std::string> types = {"application/json", "application/msgpack"};
  return types;
}

Value body_of(const Request& request) {
  require_body_type(request, every_body_type());
  const std::string* type = request.headers.find("content-type");
  return read_body(type ? std::string_view(*type) : std::string_view(), request.body);
}

bool accepts(const Request& request, std::string_view media_type) {
  const std::string* accept = request.headers.find("accept");
  return accept && lists(*accept, media_type);
}

bool wants_json(const Request& request) {
  const std::string_view format = request.parameter("format").value_or("");
  if (format == "json" || format == "application/json") return true;
  if (format == "msgpack" || format == "application/msgpack") return false;
  return accepts(request, "application/json") && !accepts(request, "application/msgpack");
}

FieldDoc format_parameter() {
  return {.name = "format",
          .type = "string",
          .help = "of the answer; default: what Accept names, else msgpack",
          .one_of = {"json", "msgpack", "application/json", "application/msgpack"}};
}

Response packed_response(const Request& request, const Value& value, int status) {
  if (wants_json(request))
    return {.status = status, .content_type = "application/json", .body = write_json(value), .headers = {}};
  return {
      .status = status, .content_type = "application/msgpack", .body = write_msgpack(value), .headers = {}};
}

}  // namespace shoal::server
