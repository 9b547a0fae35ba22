#include "server/access/gate.h"

#include "base/error.h"
#include "server/access/offered_protocols.h"
#include "server/http/loopback.h"

namespace shoal::server {

Gate::Gate(ApiKeys keys, ApiKeys admin_keys, std::string_view origins, std::string_view listen)
    : keys_(std::move(keys)),
      admin_keys_(std::move(admin_keys)),
      cross_origin_(origins, keys_.empty() && is_loopback_host(host_of(listen))) {
  if (admin_keys_.shares_a_key_with(keys_))
    fail(ErrorCode::invalid_argument, "admin_key: expected a key that is no client's, got one that is both");
  if (!admin_keys_.limits().empty())
    fail(ErrorCode::invalid_argument,
         "admin_key_file: expected keys without limits; administrators have none");
}

std::optional<Gate::Refusal> Gate::refuse(Access access, Request& head, bool upgrade) const {
  if (auto error = check_key(access, head, upgrade))
    return Refusal{std::move(*error), {{"www-authenticate", "Bearer"}}};
  if (const std::string_view objection = cross_origin_.objection(head, upgrade); !objection.empty())
    return Refusal{{403, ErrorCode::invalid_argument, std::string(objection)}, {}};
  return std::nullopt;
}

std::optional<HttpError> Gate::check_key(Access access, Request& head, bool upgrade) const {
  const ApiKeys& keys = access == Access::admin ? admin_keys_ : keys_;
  if (access == Access::open || keys.empty()) return std::nullopt;
  const std::string* authorization = head.headers.find("authorization");
  std::optional<std::string> offered;
  if (const std::string* key = authorization ? nullptr : head.headers.find("xi-api-key")) offered = *key;
  if (upgrade && !authorization && !offered) offered = offered_protocols(head.headers).key;
  const auto client =
      offered ? keys.client_with(*offered) : keys.client_of(authorization ? *authorization : std::string());
  if (client) {
    head.client = *client;
    return std::nullopt;
  }
  const bool sent = authorization || offered;
  std::string message = sent ? "this API key is not known" : "an API key is needed";
  message += "; send `Authorization: Bearer KEY` or `xi-api-key: KEY`";
  if (upgrade) message += ", from a browser the subprotocols `shoal` and `shoal-api-key.KEY`";
  return HttpError{401, ErrorCode::invalid_argument, std::move(message)};
}

}  // namespace shoal::server
