#include "server/access/error_style.h"

#include <algorithm>
#include <charconv>

#include "server/body/place.h"

namespace shoal::server {
namespace {

// A place in the queue is free again after the rest of somebody's utterance; a model is loaded in seconds.
constexpr int kRetryFullQueueS = 1, kRetryUnavailableS = 5;
constexpr const char* kFishTypes = "application/json, application/msgpack, multipart/form-data";

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported:
    case ErrorCode::corrupt_file:
      return 400;
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::already_exists:
      return 409;
    case ErrorCode::too_large:
      return 413;
    case ErrorCode::cancelled:
      return 499;
    case ErrorCode::deadline_exceeded:
      return 504;
    case ErrorCode::resource_exhausted:
      return 429;
    case ErrorCode::unavailable:
      return 503;
    case ErrorCode::io:
    case ErrorCode::internal:
      return 500;
  }
  return 500;
}

// "text: 300000 bytes, ..." -> "text", "prosody.speed: ..." -> "prosody.speed".
std::string leading_name(const std::string& message) {
  const auto is_part = [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == '.'; };
  const auto end = std::find_if_not(message.begin(), message.end(), is_part);
  const auto length = static_cast<size_t>(end - message.begin());
  return message.compare(length, 2, ": ") == 0 ? message.substr(0, length) : "";
}

// "reference 2: is silence" -> "references[1].audio".
std::string named_clip(const std::string& message) {
  constexpr std::string_view kClip = "reference ";
  if (!message.starts_with(kClip)) return "";
  const char *first = message.data() + kClip.size(), *last = message.data() + message.size();
  size_t number = 0;
  const char* end = std::from_chars(first, last, number).ptr;
  const std::string_view rest(end, last);
  if (number == 0 || !rest.starts_with(": ")) return "";
  const bool of_words = rest.starts_with(": its transcript ");
  return member_path(item_path("references", number - 1), of_words ? "text" : "audio");
}

bool names_arguments(ErrorCode code) {
  return code == ErrorCode::invalid_argument || code == ErrorCode::too_large ||
         code == ErrorCode::unsupported || code == ErrorCode::not_found || code == ErrorCode::corrupt_file;
}

const char* openai_type(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

std::string openai_code(const HttpError& error) {
  if (error.status == 401) return "invalid_api_key";
  if (error.code == ErrorCode::not_found && error.param == "model") return "model_not_found";
  if (error.code == ErrorCode::resource_exhausted) return "rate_limit_exceeded";
  return std::string(name_of(error.code));
}

Value fish_body(const HttpError& error, const std::string& request_id) {
  return {Value::Object{{"statusCode", {int64_t{error.status}}},
                        {"message", {error.message}},
                        {"error", {std::string(phrase_of(error.status))}},
                        {"request_id", {request_id}}}};
}

Value kokoro_body(const HttpError& error, const std::string& request_id) {
  return {Value::Object{{"detail",
                         {Value::Object{{"error", {std::string(name_of(error.code))}},
                                        {"message", {error.message}},
                                        {"type", {std::string(openai_type(error.status))}},
                                        {"param", error.param.empty() ? Value{} : Value{error.param}},
                                        {"request_id", {request_id}}}}}}};
}

// As the service has it, and as its framework tells of fields.
Value elevenlabs_body(const HttpError& error, const std::string& request_id) {
  if (error.status == 422) {
    Value::Array where{{std::string("body")}, {error.param}};
    Value::Object wrong{{"loc", {std::move(where)}},
                        {"msg", {error.message}},
                        {"type", {std::string("value_error")}},
                        {"request_id", {request_id}}};
    return {Value::Object{{"detail", {Value::Array{{std::move(wrong)}}}}}};
  }
  return {Value::Object{{"detail",
                         {Value::Object{{"status", {elevenlabs_status(error)}},
                                        {"message", {error.message}},
                                        {"type", {std::string(openai_type(error.status))}},
                                        {"param", error.param.empty() ? Value{} : Value{error.param}},
                                        {"request_id", {request_id}}}}}}};
}

Value plain_body(const HttpError& error, const std::string& request_id) {
  Value::Object inner{{"code", {std::string(name_of(error.code))}}, {"message", {error.message}}};
  if (!error.param.empty()) inner.emplace_back("param", Value{error.param});
  inner.emplace_back("request_id", Value{request_id});
  return {Value::Object{{"error", {std::move(inner)}}}};
}

}  // namespace

HttpError http_error(const Error& error) {
  HttpError out{.status = status_of(error.code()), .code = error.code(), .message = error.message()};
  if (const auto* body = dynamic_cast<const BodyError*>(&error)) {
    out.param = body->where();
    out.breaks_schema = error.code() == ErrorCode::invalid_argument && !body->where().empty();
    if (error.code() == ErrorCode::unsupported && body->where().empty()) out.status = 415;
  } else if (names_arguments(error.code())) {
    const std::string clip = named_clip(error.message());
    out.param = clip.empty() ? leading_name(error.message()) : clip;
  }
  if (error.code() == ErrorCode::resource_exhausted) out.retry_after_s = kRetryFullQueueS;
  if (error.code() == ErrorCode::unavailable) out.retry_after_s = kRetryUnavailableS;
  if (out.status == 500) out.message = "the server failed to answer; its log says why, under the request id";
  return out;
}

std::string elevenlabs_status(const HttpError& error) {
  if (error.status == 401) return "invalid_api_key";
  if (error.code == ErrorCode::not_found && error.param == "voice_id") return "voice_not_found";
  if (error.code == ErrorCode::not_found && error.param == "model_id") return "model_not_found";
  if (error.code == ErrorCode::resource_exhausted) return "too_many_concurrent_requests";
  if (error.code == ErrorCode::unavailable) return "system_busy";
  return std::string(name_of(error.code));
}

Value openai_error(const HttpError& error, const std::string& request_id) {
  return {Value::Object{{"message", {error.message}},
                        {"type", {std::string(openai_type(error.status))}},
                        {"param", error.param.empty() ? Value{} : Value{error.param}},
                        {"code", {openai_code(error)}},
                        {"request_id", {request_id}}}};
}

Response error_response(ErrorStyle style, const HttpError& error, const std::string& request_id) {
  HttpError told = error;
  const bool has_422 = style == ErrorStyle::fish || style == ErrorStyle::elevenlabs;
  if (has_422 && told.status == 400 && told.breaks_schema) told.status = 422;
  Response response{.status = told.status, .content_type = "application/json", .body = {}, .headers = {}};
  switch (style) {
    case ErrorStyle::openai:
      response.body = write_json({Value::Object{{"error", openai_error(told, request_id)}}});
      break;
    case ErrorStyle::fish:
      response.body = write_json(fish_body(told, request_id));
      if (told.status == 415) response.headers.add("Accept", kFishTypes);
      break;
    case ErrorStyle::kokoro:
      response.body = write_json(kokoro_body(told, request_id));
      break;
    case ErrorStyle::elevenlabs:
      response.body = write_json(elevenlabs_body(told, request_id));
      break;
    case ErrorStyle::kserve:
      response.body = write_json({Value::Object{{"error", {told.message}}}});
      break;
    case ErrorStyle::plain:
      response.body = write_json(plain_body(told, request_id));
      break;
  }
  if (told.retry_after_s) response.headers.add("Retry-After", std::to_string(*told.retry_after_s));
  return response;
}

}  // namespace shoal::server
