// The head of an answer as bytes.
#pragma once

#include <ctime>
#include <string>

#include "server/http/message.h"

namespace shoal::server {

// How the reader of an answer knows where its body ends.
enum class BodyEnd {
  length,   // Content-Length
  chunked,  // the last chunk
  close,    // the connection's end: HTTP/1.0
};

struct AnswerFraming {
  BodyEnd end = BodyEnd::length;
  bool keep_alive = true;
  bool http_1_0 = false;  // the client speaks HTTP/1.0: it is told that the connection stays open
};

// Status line, Date, the fields of `response` and those of the framing, up to the empty line. Throws
// Error(internal) for a status outside 200 to 599, a field that would break the head (an invalid name, a
// control character in a value), and a field of the framing.
std::string response_head(const Response& response, const AnswerFraming& framing, std::time_t now);

// 204 and 304 have neither body nor length (RFC 9110 6.4.1).
bool status_has_body(int status);

// Without control characters: cannot end its line.
bool is_field_value(std::string_view value);

}  // namespace shoal::server
