// Bodies in and out of the routes that speak MessagePack as well as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/body/schema.h"
#include "server/http/message.h"

namespace shoal::server {

// The media types that they answer with: application/json, application/msgpack.
const std::vector<std::string>& packed_types();

// Reads the body by its Content-Type. Throws BodyError; unsupported (415) when the type is not in
// every_body_type().
Value body_of(const Request& request);

// Whether Accept names that media type (in lower case).
bool accepts(const Request& request, std::string_view media_type);

// Whether the client asked for JSON: the query has format=json (or application/json), or no format that is
// known and Accept has application/json without application/msgpack. Otherwise it gets
// MessagePack.
bool wants_json(const Request& request);

// What wants_json reads of the query, for /openapi.json.
FieldDoc format_parameter();

// A value in the format that the client asks for.
Response packed_response(const Request& request, const Value& value, int status = 200);

}  // namespace shoal::server
