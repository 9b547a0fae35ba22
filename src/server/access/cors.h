// Which web pages of other origins may use the server.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http/message.h"

namespace shoal::server {

class CrossOrigin {
 public:
  // `origins` as ServerConfig::cors_origins. for_this_machine: the server listens on a loopback address and
  // requires no key, so that only the host name of the page distinguishes this machine's user from a
  // stranger.
  explicit CrossOrigin(std::string_view origins, bool for_this_machine = false);

  // Why this request may not act; empty: it may. Refused are requests that change something or open a
  // WebSocket from a page whose origin is neither this server's own nor allowed: browsers send such requests
  // without asking when their body looks like a form's. A server for this machine treats a page as its own
  // only if the host is a loopback host or that of an allowed origin: any other name can be pointed at
  // 127.0.0.1 once its page is loaded (DNS rebinding). A request without Origin does not come from a page, or
  // only reads.
  std::string_view objection(const Request& request, bool upgrade) const;
  // Fields of every answer to this request; none when its origin is not allowed.
  Headers answer_headers(const Request& request) const;
  // Additionally, in an answer to OPTIONS: the fields that the page asks for are allowed. `methods`: of the
  // path.
  Headers preflight_headers(const Request& request, std::string_view methods) const;

 private:
  bool allows(std::string_view origin) const;
  bool is_own(std::string_view host) const;

  const bool for_this_machine_;
  bool any_ = false;
  std::vector<std::string> origins_;
};

}  // namespace shoal::server
