#include "base/printable.h"
#include "server/body/media_type.h"
#include "server/body/value.h"

namespace shoal::server {
namespace {

constexpr std::string_view kTaken = "application/json, application/msgpack or multipart/form-data";

[[noreturn]] void fail_type(const std::string& found) {
  throw BodyError(ErrorCode::unsupported, "", concat("Content-Type: expected ", kTaken, ", found ", found));
}

}  // namespace

Value read_body(std::string_view content_type, std::string_view body) {
  if (trimmed(content_type).empty()) fail_type("none");
  const auto type = parse_media_type(content_type);
  const std::string found = concat('"', printable(content_type), '"');
  if (!type) fail_type(found);
  if (!type->is_utf8()) {
    throw BodyError(ErrorCode::unsupported, "",
                    concat("Content-Type: expected the charset utf-8, found ", found));
  }
  if (type->value == "application/json") return read_json(body);
  if (type->value == "application/msgpack") return read_msgpack(body);
  if (type->value == "application/x-www-form-urlencoded") return read_urlencoded(body);
  if (type->value != "multipart/form-data") fail_type(found);
  const std::string* boundary = type->find("boundary");
  if (!boundary)
    throw BodyError(ErrorCode::invalid_argument, "", "Content-Type: expected a boundary, found none");
  return read_form(body, *boundary);
}

}  // namespace shoal::server
