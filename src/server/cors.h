// Which web pages of other origins may use the server.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http/message.h"

namespace shoal::server {

class CrossOrigin {
 public:
  // `origins` as ServerConfig::cors_origins.
  explicit CrossOrigin(std::string_view origins);

  // False for a request that changes something, or opens a WebSocket, from a page of an origin that is
  // neither this server's own nor allowed: browsers send those without asking when their body looks like a
  // form's.
  bool may_act(const Request& request, bool upgrade) const;
  // Fields of every answer to this request; none when its origin is not allowed.
  Headers answer_headers(const Request& request) const;
  // Of an answer to OPTIONS, besides those: the fields that the page asks for are allowed. `methods`: of the
  // path.
  Headers preflight_headers(const Request& request, std::string_view methods) const;

 private:
  bool allows(std::string_view origin) const;

  bool any_ = false;
  std::vector<std::string> origins_;
};

}  // namespace shoal::server
