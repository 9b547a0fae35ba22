// Reads the bodies of requests where that does not block a connection.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "server/body/schema.h"
#include "server/routes/services.h"

namespace shoal::server {

// Larger bodies (clips in base64) are read on a worker: this size takes under a millisecond.
constexpr size_t kQuickBodyBytes = size_t{64} << 10;

// The media types that routes take.
const std::vector<std::string>& json_type();        // application/json
const std::vector<std::string>& every_body_type();  // besides it application/msgpack and multipart/form-data

// Throws BodyError(unsupported), a 415, unless the Content-Type is one of `types`.
void require_body_type(const Request& request, const std::vector<std::string>& types);

// The body by its Content-Type, which must be one of `types`, and by its schema, over these defaults.
// `schema` and `types` are the route's: they outlive the request. Throws BodyError.
template <typename T>
Task<T> read_request_onto(Services& services, Exchange& exchange, const Schema<T>& schema,
                          const std::vector<std::string>& types, T defaults) {
  const Request& request = exchange.request();
  require_body_type(request, types);
  const auto read = [&request, &schema, &defaults] {
    const std::string* type = request.headers.find("Content-Type");
    return schema.read_onto(std::move(defaults), read_body(type ? *type : "", request.body));
  };
  if (request.body.size() <= kQuickBodyBytes) co_return read();
  T body = co_await services.workers.run(exchange.executor(), read);
  co_return body;
}

// The same over the type's own defaults.
template <typename T>
Task<T> read_request(Services& services, Exchange& exchange, const Schema<T>& schema,
                     const std::vector<std::string>& types) {
  T defaults{};
  T body = co_await read_request_onto(services, exchange, schema, types, std::move(defaults));
  co_return body;
}

}  // namespace shoal::server
