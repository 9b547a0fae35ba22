// Who may use a route.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/access/cors.h"
#include "server/access/error_style.h"
#include "server/access/keys.h"
#include "server/http/message.h"

namespace shoal::server {

enum class Access {
  open,    // no key needed: live checks, the page
  client,  // an API key, where there are any: as `Authorization: Bearer KEY`, or as ElevenLabs' `xi-api-key`
  admin,   // the admin key; without one the route does not exist
};

class Gate {
 public:
  struct Refusal {
    HttpError error;
    Headers headers;
  };

  // `origins` as ServerConfig::cors_origins; `listen` is where the server listens. Throws
  // Error(invalid_argument) when a key is both a client's and an administrator's.
  Gate(ApiKeys keys, ApiKeys admin_keys, std::string_view origins, std::string_view listen);

  std::map<std::string, KeyLimits> limits() const { return keys_.limits(); }
  bool has_keys() const { return !keys_.empty(); }
  bool has_admin() const { return !admin_keys_.empty(); }
  // Why this request may not use a route: its key, or the page that it comes from. Nothing: it may, and
  // head.client is set. `upgrade`: it asks for a WebSocket.
  std::optional<Refusal> refuse(Access access, Request& head, bool upgrade) const;
  const CrossOrigin& cross_origin() const { return cross_origin_; }

 private:
  std::optional<HttpError> check_key(Access access, Request& head, bool upgrade) const;

  const ApiKeys keys_, admin_keys_;
  const CrossOrigin cross_origin_;
};

}  // namespace shoal::server
