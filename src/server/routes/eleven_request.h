// Requests in ElevenLabs' API, and what their names stand for here. (Facts: its OpenAPI document of 2026.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/body/schema.h"
#include "server/routes/speech_answer.h"

namespace shoal::server {

// What bodies, queries and messages say. Fields without an effect here are named in `unused`, "name: why".
struct ElevenRequest {
  std::string text, model_id, language_code, apply_text_normalization = "auto";
  std::string output_format = "mp3_44100_128";
  std::optional<uint64_t> seed;
  double speed = 1;     // voice_settings.speed
  int latency = 0;      // optimize_streaming_latency; 4 turns the rules for texts off
  int patience_s = 20;  // inactivity_timeout, of WebSockets
  bool ssml = false;    // enable_ssml_parsing
  bool logging = true, auto_mode = true, alignment = true;  // without an effect
  std::vector<std::string> unused;
};

Schema<ElevenRequest> eleven_body_schema();
Schema<ElevenRequest> eleven_query_schema();   // of POST
Schema<ElevenRequest> eleven_socket_schema();  // the query of a WebSocket
// voice_settings, which bodies and messages have.
Field<ElevenRequest> eleven_settings_field();
// Names of fields that are refused unless they are empty, because texts have no dictionaries here.
Field<ElevenRequest> eleven_dictionaries_field();

// The query of a request by its schema. Throws BodyError, for names that the schema lacks, too.
ElevenRequest read_query(const Schema<ElevenRequest>& schema, const Request& request);

// "mp3_44100_128", "pcm_16000", "ulaw_8000", ...: one of the schema's.
struct ElevenFormat {
  audio::Format format = audio::Format::mp3;
  int sample_rate_hz = 0, bitrate_bps = 0;
};
ElevenFormat format_of(const ElevenRequest& request);

// Who speaks: a model, and a voice of it, "" for its own.
struct ElevenSpeaker {
  const ServedModel* model = nullptr;
  std::string voice, language;
};
// A name of /v1/models, or any name that begins with "eleven_", which leaves the choice to the voice: the
// first model that has it, else the first. A voice is one of /v1/voices, an alias, or the id of a voice that
// comes with an ElevenLabs account, which is the nearest of OpenAI's names. Looks into the folders of voices,
// so it belongs on a worker. Throws BodyError(not_found) of model_id.
ElevenSpeaker speaker_of(const Services& services, const ElevenRequest& request, const std::string& voice_id);

std::optional<bool> normalisation_of(const ElevenRequest& request);

// Errors of the engine under the names that fields have in this API: to be called in a handler of `error`.
[[noreturn]] void rethrow_for_eleven(const Error& error);

}  // namespace shoal::server
