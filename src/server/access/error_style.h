// Errors as each family of clients knows them.
#pragma once

#include <optional>
#include <string>

#include "server/body/value.h"
#include "server/http/message.h"

namespace shoal::server {

enum class ErrorStyle {
  openai,      // {"error": {"message", "type", "param", "code"}}
  fish,        // {"statusCode", "message", "error"}
  kokoro,      // {"detail": {"error", "message", "type"}} (Kokoro-FastAPI 0.8)
  elevenlabs,  // {"detail": {"status", "message"}}, of fields {"detail": [{"loc", "msg", "type"}]}
  kserve,      // {"error": message} (open inference protocol, Triton)
  plain,       // {"error": {"code", "message", "request_id"}}: our own routes
};

struct HttpError {
  int status = 500;
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::string param;  // field of the body; "" for none
  std::optional<int> retry_after_s;
  bool breaks_schema = false;  // the field is missing, unknown, of the wrong kind or out of its range
};

// The only mapping of codes to statuses. invalid_argument 400 (fish, elevenlabs: 422 for a field that
// violates the schema, like its framework), not_found 404, already_exists 409, unsupported 400 (a body of the
// wrong media type: 415), corrupt_file 400, too_large 413, cancelled 499, deadline_exceeded 504,
// resource_exhausted 429 with Retry-After, unavailable 503 with Retry-After, io and internal 500 with a
// message without internal details (the log has them). `param` is a BodyError's field, or the name at the
// beginning of other messages about an argument ("text: ..."; "reference 2: ..." is references[1].audio).
HttpError http_error(const Error& error);
// Every body but kserve's carries the request's id too. A 415 of fish lists its media types in the header
// Accept.
Response error_response(ErrorStyle style, const HttpError& error, const std::string& request_id);
// The word for an error in ElevenLabs' API: "voice_not_found", ...
std::string elevenlabs_status(const HttpError& error);
// The value of "error" in an answer or event of the OpenAI form.
Value openai_error(const HttpError& error, const std::string& request_id);

}  // namespace shoal::server
