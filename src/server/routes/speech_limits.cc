// The server's limits for a request, on every route.
#include <algorithm>
#include <chrono>

#include "audio/clip.h"
#include "base/error.h"
#include "server/observe/log_sink.h"
#include "server/routes/speech_answer.h"
#include "server/routes/unknown_name.h"
#include "shoal/model.h"
#include "text/utf8.h"

namespace shoal::server {
namespace {

// Characters that a model of phonemes is asked to speak in one request, unless max_text_length says
// otherwise: more than an hour of sound.
constexpr int64_t kMostOfPhonemeModel = 65'536;

// Plain errors, not of the schema: the message begins with the field, which http_error reads.
void check_text(const ServerConfig& config, const Engine& engine, const SpeechRequest& speech) {
  const bool is_text = speech.phonemes.empty();
  const char* field = is_text ? "text" : "phonemes";
  const std::string& text = is_text ? speech.text : speech.phonemes;
  if (static_cast<int64_t>(text.size()) > kMaxTextBytes)
    fail(ErrorCode::invalid_argument, field, ": expected at most ", kMaxTextBytes, " bytes, got ",
         text.size());
  const int64_t characters = text::count_characters(text);
  int64_t most = config.max_text_length;
  if (most == 0 && characters > kMostOfPhonemeModel && engine.traits().phonemes) most = kMostOfPhonemeModel;
  if (most > 0 && characters > most)
    fail(ErrorCode::invalid_argument, field, ": expected at most ", most, " characters, got ", characters);
}

void check_references(const ServerConfig& config, const Engine& engine, const SpeechRequest& speech) {
  const size_t count = speech.references.size() + speech.encoded_references.size();
  if (count > 0 && !engine.traits().references)
    fail(ErrorCode::unsupported, "references: this model has voices of its own and follows no clips");
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

// Where the request names no deadline the engine's holds, and never one beyond the server's.
void set_deadline(const Services& services, const Engine& engine, SpeechRequest& speech) {
  const std::chrono::seconds most(services.config.max_timeout_s);
  if (speech.timeout > most)
    fail(ErrorCode::invalid_argument, "timeout: expected at most ", most.count(), " seconds, got ",
         static_cast<double>(speech.timeout.count()) / 1000);
  if (speech.timeout.count() != 0) return;
  const std::chrono::seconds usual = usual_timeout(services, engine);
  if (usual.count() != engine.config().request_timeout_s) speech.timeout = usual;
}

// Quoted text is the client's own input, whatever it looks like.
std::string without_quoted(std::string message) {
  const size_t first = message.find('"'), last = message.rfind('"');
  if (first != last) message.erase(first, last - first);
  return message;
}

// Whether a message mentions a setting or a path: outside quotes a slash belongs to a path.
bool names_phonemizers_file(const std::string& message) {
  return message.starts_with("phonemizer: ") && message.find('/') != std::string::npos;
}

}  // namespace

std::chrono::seconds usual_timeout(const Services& services, const Engine& engine) {
  const std::chrono::seconds most(services.config.max_timeout_s), usual(engine.config().request_timeout_s);
  return usual.count() == 0 ? most : std::min(usual, most);
}

void check_and_complete(Services& services, Engine& engine, const Request& request, SpeechRequest& speech) {
  check_text(services.config, engine, speech);
  check_references(services.config, engine, speech);
  set_deadline(services, engine, speech);
  speech.strict = services.config.strict;
  speech.client = request.client;
}

int64_t charged_characters(const SpeechRequest& speech) {
  return text::count_characters(speech.phonemes.empty() ? speech.text : speech.phonemes);
}

void tell_unknown_voice(const Services& services, Engine& engine, const Error& error) {
  const auto wanted = unknown_voice_of(error);
  if (!wanted) return;
  std::vector<std::string> names = {"default"};
  for (VoiceInfo& voice : engine.voices().list()) names.push_back(std::move(voice.name));
  for (VoiceAlias& alias : services.voice_names.aliases_of(engine)) names.push_back(std::move(alias.name));
  fail(ErrorCode::not_found, "voice: ", none_called(*wanted, names, "/v1/audio/voices"));
}

void hide_paths(const Engine& engine, const Request& request, const Error& error) {
  const std::string message = without_quoted(error.message());
  if (names_phonemizers_file(message)) {
    log_failure(request, error.message());
    fail(error.code(),
         "phonemizer: it cannot be used here, and the server's log says why, under the request id; send "
         "phonemes instead of text");
  }
  const EngineConfig config = engine.config();
  const auto names_file_of = [&](const std::string& dir) {
    return !dir.empty() && message.find(dir + "/") != std::string::npos;
  };
  if (!names_file_of(config.references_dir) && !names_file_of(config.model)) return;
  if (error.code() == ErrorCode::not_found) fail(ErrorCode::not_found, "voice: there is none of that name");
  log_failure(request, concat("a named voice cannot be used: ", error.message()));
  fail(ErrorCode::invalid_argument,
       "voice: its files cannot be used, and the server's log says why, under the request id");
}

}  // namespace shoal::server
