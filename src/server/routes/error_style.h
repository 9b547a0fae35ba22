// Errors as each family of clients knows them.
#pragma once

#include <optional>
#include <string>

#include "server/body/value.h"
#include "server/http/message.h"

namespace shoal::server {

enum class ErrorStyle {
  openai,  // {"error": {"message", "type", "param", "code"}}
  fish,    // {"statusCode", "message", "error"} (spec/serving.md 2)
  plain,   // {"error": {"code", "message", "request_id"}}: our own routes
};

struct HttpError {
  int status = 500;
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::string param;  // field of the body; "" for none
  std::optional<int> retry_after_s;
};

// The one place where codes become statuses. invalid_argument 400 (fish: 422 for a field of the wrong kind),
// not_found 404, already_exists 409, unsupported 400 (a body of the wrong media type: 415), corrupt_file 400,
// too_large 413, cancelled 499, deadline_exceeded 504, resource_exhausted 429 with Retry-After, unavailable 503 with
// Retry-After, io and internal 500 with a message that tells nothing of the inside (the log has it).
HttpError http_error(const Error& error);
Response error_response(ErrorStyle style, const HttpError& error, const std::string& request_id);

}  // namespace shoal::server
