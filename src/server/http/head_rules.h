// Rules for the head of a request beyond its grammar, so that two readers of the same bytes (a proxy in
// front, and we) cannot take them for different requests. RFC 9110, RFC 9112.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace shoal::server {

struct Refusal {
  int status = 400;
  std::string message;  // one sentence
};

// Host, Content-Length, Transfer-Encoding and Expect. `version`: 10 or 11. Chunked is the only known coding
// (others: 501); it is refused together with a length, and in HTTP/1.0.
std::optional<Refusal> check_head(const Request& request, int version);

// Fills path and query of `request` from the target of the request line: "/path?query", "http://host/path",
// "*". A broken %-escape and NUL are refused.
std::optional<Refusal> decode_target(std::string_view target, Request& request);

// The fields that a client must send to open a WebSocket (RFC 6455 4.2.1). 426: a version other than 13.
std::optional<Refusal> check_websocket(const Request& request);

// `token` is in the comma-separated lists of all fields called `name`.
bool has_token(const Headers& headers, std::string_view name, std::string_view token);

}  // namespace shoal::server
