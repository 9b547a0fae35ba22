// ElevenLabs' API: speech with and without the times of its characters, and voices.
#include <memory>

#include "base/error.h"
#include "server/routes/eleven_answer.h"
#include "server/routes/eleven_lists.h"
#include "server/routes/eleven_request.h"
#include "server/routes/eleven_session.h"
#include "server/routes/request_body.h"
#include "server/routes/route_pattern.h"
#include "server/routes/speech_parts.h"

namespace shoal::server {
namespace {

struct ElevenSchemas {
  Schema<ElevenRequest> body = eleven_body_schema(), query = eleven_query_schema();
};

struct ElevenSocketSchemas {
  Schema<ElevenRequest> query = eleven_socket_schema();
  Schema<ElevenMessage> single = eleven_message_schema(false), multi = eleven_message_schema(true);
};

// One of the four ways to ask for the same speech.
struct ElevenWay {
  const char* path;
  bool streaming, timed;
  const char* summary;
};
constexpr ElevenWay kWays[] = {
    {"/v1/text-to-speech/{voice_id}", false, false, "Speaks a text (ElevenLabs' API)"},
    {"/v1/text-to-speech/{voice_id}/stream", true, false, "The same, as it is made"},
    {"/v1/text-to-speech/{voice_id}/with-timestamps", false, true,
     "The same in JSON, with the times of characters"},
    {"/v1/text-to-speech/{voice_id}/stream/with-timestamps", true, true,
     "The same in lines of JSON, as it is made"}};

SpeechRequest speech_of(ElevenRequest& asked, const ElevenSpeaker& speaker) {
  SpeechRequest request;
  request.text = std::move(asked.text);
  request.voice = speaker.voice;
  request.language = speaker.language;
  request.seed = asked.seed;
  request.speed = asked.speed;
  request.normalise = normalisation_of(asked);
  request.special_tokens = false;
  request.unused = std::move(asked.unused);
  return request;
}

AnswerOptions options_of(const ElevenRequest& asked, const ElevenWay& way) {
  const ElevenFormat format = format_of(asked);
  return {.format = format.format,
          .encoder = {.bitrate_bps = format.bitrate_bps},
          .sample_rate_hz = format.sample_rate_hz,
          .streaming = way.streaming,
          .content_type = {},
          .headers = {}};
}

Task<> speak_eleven(Services& services, Exchange& exchange, std::shared_ptr<const ElevenSchemas> schemas,
                    const ElevenWay& way) {
  ElevenRequest from_query = read_query(schemas->query, exchange.request());
  ElevenRequest asked =
      co_await read_request_onto(services, exchange, schemas->body, json_type(), std::move(from_query));
  const std::string voice_id(match_path(way.path, exchange.request().path).value());
  const auto find_speaker = [&] { return speaker_of(services, asked, voice_id); };
  const ElevenSpeaker speaker = co_await services.workers.run(exchange.executor(), find_speaker);
  Engine& engine = *speaker.model->engine;
  AnswerOptions options = options_of(asked, way);
  SpeechRequest request = speech_of(asked, speaker);
  try {
    if (asked.ssml) options.parts = read_ssml(engine, request);
    if (way.timed)
      co_await answer_with_characters(services, engine, exchange, std::move(request), std::move(options));
    else
      co_await answer_with_speech(services, engine, exchange, std::move(request), std::move(options));
  } catch (const Error& error) {
    rethrow_for_eleven(error);
  }
}

Route eleven_speech_route(const ElevenWay& way, const std::shared_ptr<const ElevenSchemas>& schemas) {
  Route route{.method = "POST",
              .path = way.path,
              .errors = ErrorStyle::elevenlabs,
              .body = BodySize::small,
              .doc = {.summary = way.summary,
                      .body = schemas->body.docs(),
                      .body_types = json_type(),
                      .query = schemas->query.docs()},
              .takes_slot = true};
  if (!way.timed) route.doc.answer_types = audio::mime_types();
  if (way.timed) route.doc.answer_types = {way.streaming ? "application/x-ndjson" : "application/json"};
  route.handle = [schemas, &way](Services& services, Exchange& exchange) {
    return speak_eleven(services, exchange, schemas, way);
  };
  return route;
}

Task<> converse_eleven(Services& services, WebSocket& socket,
                       std::shared_ptr<const ElevenSocketSchemas> schemas, bool multi) {
  ElevenSession session(services, socket, schemas->query, multi ? schemas->multi : schemas->single, multi);
  co_await session.run();
}

Route eleven_socket_route(const std::shared_ptr<const ElevenSocketSchemas>& schemas, bool multi) {
  Route route{.method = "GET",
              .path = multi ? "/v1/text-to-speech/{voice_id}/multi-stream-input"
                            : "/v1/text-to-speech/{voice_id}/stream-input",
              .errors = ErrorStyle::elevenlabs,
              .body = BodySize::small,
              .doc = {.summary = multi ? "A WebSocket: several utterances at once (ElevenLabs' API)"
                                       : "A WebSocket: text in pieces in, sound out (ElevenLabs' API)",
                      .query = schemas->query.docs()},
              .takes_slot = true};
  route.converse = [schemas, multi](Services& services, WebSocket& socket) {
    return converse_eleven(services, socket, schemas, multi);
  };
  return route;
}

Response eleven_json(const Value& value) {
  return {.status = 200, .content_type = "application/json", .body = write_json(value), .headers = {}};
}

Task<> list_eleven_voices(Services& services, Exchange& exchange) {
  const auto list = [&services] { return eleven_voices(services); };
  const Value voices = co_await services.workers.run(exchange.executor(), list);
  co_await exchange.respond(eleven_json(voices));
}

Value one_voice(const Services& services, std::string_view id) {
  const Value list = eleven_voices(services);
  for (const Value& voice : *list.find("voices")->as<Value::Array>())
    if (*voice.find("voice_id")->as<std::string>() == id) return voice;
  throw BodyError(ErrorCode::not_found, "voice_id", "there is none of that name; see /v1/voices");
}

Task<> get_eleven_voice(Services& services, Exchange& exchange) {
  const std::string id(match_path("/v1/voices/{voice_id}", exchange.request().path).value());
  const auto find = [&services, &id] { return one_voice(services, id); };
  const Value voice = co_await services.workers.run(exchange.executor(), find);
  co_await exchange.respond(eleven_json(voice));
}

Route eleven_list_route(std::string path, std::string summary) {
  return {.method = "GET",
          .path = std::move(path),
          .errors = ErrorStyle::elevenlabs,
          .doc = {.summary = std::move(summary), .answer_types = {"application/json"}}};
}

}  // namespace

std::vector<Route> eleven_routes(const ServerConfig&) {
  const auto schemas = std::make_shared<const ElevenSchemas>();
  std::vector<Route> routes;
  for (const ElevenWay& way : kWays) routes.push_back(eleven_speech_route(way, schemas));
  const auto socket_schemas = std::make_shared<const ElevenSocketSchemas>();
  for (const bool multi : {false, true}) routes.push_back(eleven_socket_route(socket_schemas, multi));
  routes.push_back(eleven_list_route("/v1/voices", "Voices, as ElevenLabs' clients ask for them"));
  routes.back().handle = list_eleven_voices;
  routes.push_back(eleven_list_route("/v1/voices/{voice_id}", "One of them"));
  routes.back().handle = get_eleven_voice;
  return routes;
}

}  // namespace shoal::server
