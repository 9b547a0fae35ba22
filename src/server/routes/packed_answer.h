// Bodies in and out of the routes that speak MessagePack as well as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/body/value.h"
#include "server/http/message.h"

namespace shoal::server {

// The media types that they take, and answer with.
const std::vector<std::string>& body_types();    // application/json, application/msgpack, multipart/form-data
const std::vector<std::string>& packed_types();  // the first two

// The body by its Content-Type. Throws BodyError; unsupported, a 415, when the type is none of body_types().
Value body_of(const Request& request);

// Whether Accept names that media type (in lower case).
bool accepts(const Request& request, std::string_view media_type);

// Whether the client asked for JSON: the query has format=json (or application/json), or no format that is
// known and Accept has application/json without application/msgpack (spec/serving.md 2). Otherwise it gets
// MessagePack.
bool wants_json(const Request& request);

// A value as that client wants it.
Response packed_response(const Request& request, const Value& value, int status = 200);

}  // namespace shoal::server
