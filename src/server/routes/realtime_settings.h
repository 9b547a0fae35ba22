// How a session of OpenAI's Realtime API speaks. (Facts: the API's reference and its package's types, 2026.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/body/schema.h"
#include "server/routes/live_messages.h"
#include "server/routes/models.h"
#include "server/routes/realtime_items.h"

namespace shoal::server {

// Of a session; of a response, which begins with its session's. Fields without an effect here are named in
// `unused`, "name: why".
struct RealtimeSettings {
  std::string model, voice = "alloy", instructions, lang_code;
  std::string format = "audio/pcm";  // or audio/pcmu, audio/pcma
  int rate_hz = 24000;               // of it
  double speed = 1;
  std::optional<int64_t> max_tokens;  // of sound, kTokensPerSecond each second; absent: "inf"
  std::optional<uint64_t> seed;
  std::optional<bool> normalize;
  std::vector<std::string> unused;
  // Of a response.
  bool out_of_band = false;                         // conversation: "none"
  std::optional<std::vector<RealtimeInput>> input;  // absent: of the conversation
  Value metadata;
};

// As the API counts the sound that a model makes.
constexpr int kTokensPerSecond = 20;

// Fields in today's form (audio.output.voice) and in that of the beta (voice), whoever sends them.
Schema<RealtimeSettings> realtime_session_schema();
Schema<RealtimeSettings> realtime_response_schema();

// The session as its client is told of it. beta: in that form.
Value session_value(const RealtimeSettings& settings, const std::string& id, bool beta);
Value format_value(const RealtimeSettings& settings);  // {"type", "rate"}
std::string beta_format_of(const RealtimeSettings& settings);
Value max_tokens_value(const RealtimeSettings& settings);

// For live_settings. A name of OpenAI's realtime models is the first model, unless a model has it.
LiveStart live_start_of(const RealtimeSettings& settings, const Models& models);

// Errors of the engine under the names that fields have in this API: to be called in a handler of `error`.
// where: "session", "response". Throws BodyError.
[[noreturn]] void rethrow_for_realtime(const Error& error, const std::string& where);

}  // namespace shoal::server
