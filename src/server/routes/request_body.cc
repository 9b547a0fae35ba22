#include "server/routes/request_body.h"

#include <algorithm>

namespace shoal::server {

const std::vector<std::string>& json_type() {
  static const std::vector<std::string> types = {"application/json"};
  return types;
}

const std::vector<std::string>& every_body_type() {
  static const std::vector<std::string> types = {"application/json", "application/msgpack",
                                                 "multipart/form-data"};
  return types;
}

void require_body_type(const Request& request, const std::vector<std::string>& types) {
  const std::string type = request.content_type();
  if (std::find(types.begin(), types.end(), type) != types.end()) return;
  std::string expected;
  for (size_t i = 0; i < types.size(); ++i)
    expected += (i == 0 ? "" : i + 1 == types.size() ? " or " : ", ") + types[i];
  throw BodyError(
      ErrorCode::unsupported, "",
      "Content-Type: expected " + expected + ", got " + (type.empty() ? "none" : '"' + type + '"'));
}

}  // namespace shoal::server
