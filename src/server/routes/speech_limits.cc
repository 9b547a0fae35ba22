// What the server allows a request, whichever route it came by.
#include <algorithm>
#include <chrono>

#include "audio/clip.h"
#include "base/error.h"
#include "base/log.h"
#include "server/routes/speech_answer.h"

namespace shoal::server {
namespace {

constexpr size_t kMostTextBytes = size_t{256} << 10;  // the engine's own limit

int64_t characters_of(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

// Plain errors, not of the schema: the message begins with the field, which http_error reads.
void check_text(const ServerConfig& config, const std::string& text) {
  if (text.size() > kMostTextBytes)
    fail(ErrorCode::invalid_argument, "text: expected at most ", kMostTextBytes, " bytes, got ", text.size());
  if (config.max_text_length > 0 && characters_of(text) > config.max_text_length)
    fail(ErrorCode::invalid_argument, "text: expected at most ", config.max_text_length, " characters, got ",
         characters_of(text));
}

void check_references(const ServerConfig& config, const SpeechRequest& speech) {
  const size_t count = speech.references.size() + speech.encoded_references.size();
  if (count > static_cast<size_t>(config.max_references))
    fail(ErrorCode::invalid_argument, "references: expected at most ", config.max_references, ", got ",
         count);
  audio::ClipLimits limits;
  if (config.max_reference_s >= limits.max_seconds) return;  // the engine's own limit comes first
  limits.max_seconds = config.max_reference_s;
  for (size_t i = 0; i < speech.references.size(); ++i)
    audio::decode_clip(std::as_bytes(std::span(speech.references[i].audio)), concat("reference ", i + 1),
                       limits);
}

// The engine's deadline where the request names none, and never beyond the server's.
void set_deadline(const Services& services, SpeechRequest& speech) {
  const std::chrono::seconds most(services.config.max_timeout_s);
  if (speech.timeout > most)
    fail(ErrorCode::invalid_argument, "timeout: expected at most ", most.count(), " seconds, got ",
         static_cast<double>(speech.timeout.count()) / 1000);
  if (speech.timeout.count() != 0) return;
  const std::chrono::seconds usual(services.engine.config().request_timeout_s);
  speech.timeout = usual.count() == 0 ? most : std::min(usual, most);
}

}  // namespace

void check_and_complete(Services& services, const Request& request, SpeechRequest& speech) {
  check_text(services.config, speech.text);
  check_references(services.config, speech);
  set_deadline(services, speech);
  speech.client = request.client;
}

void hide_paths(const Services& services, const Error& error) {
  if (error.message().find(services.engine.config().references_dir + "/") == std::string::npos) return;
  if (error.code() == ErrorCode::not_found) fail(ErrorCode::not_found, "voice: there is none of that name");
  log(LogLevel::error, "a named voice cannot be used: ", error.message());
  fail(ErrorCode::internal, "a named voice cannot be used");
}

}  // namespace shoal::server
