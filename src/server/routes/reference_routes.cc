// /v1/references: named voices over HTTP (as fish-speech's server has them).
#include "audio/clip.h"
#include "server/observe/log_sink.h"
#include "server/routes/packed_answer.h"
#include "server/routes/request_body.h"
#include "server/routes/services.h"
#include "server/routes/voice_errors.h"

namespace shoal::server {
namespace {

// A change of the folder of voices: the request, the action and the answer. `fields` are those that the
// official answer has besides success and message, even after a failure.
struct AddVoice {
  std::string id, text, audio;

  static const Schema<AddVoice>& schema() {
    static const Schema<AddVoice> schema{
        server::text("id", &AddVoice::id, "Name of the voice: 1 to 255 letters, digits, '-', '_' or ' '.")
            .required(),
        server::text("text", &AddVoice::text, "The words spoken in the clip.").required(),
        bytes("audio", &AddVoice::audio, "A wav, flac, ogg, mp3 or aiff file of the voice.").required()};
    return schema;
  }
  void apply(Services& services, Voices& voices) const {
    services.voice_names.check_not_reserved(id);
    // The folder accepts longer clips than this server may.
    if (!id.empty()) {
      audio::decode_clip(std::as_bytes(std::span(audio)), "audio",
                         {.max_seconds = static_cast<double>(services.config.max_reference_s)});
    }
    voices.add(id, audio, text);
  }
  std::string done() const { return "Reference voice '" + id + "' added successfully"; }
  Value::Object fields() const { return {{"reference_id", {id}}}; }
};

struct DeleteVoice {
  std::string id;

  static const Schema<DeleteVoice>& schema() {
    static const Schema<DeleteVoice> schema{
        server::text("reference_id", &DeleteVoice::id, "Name of the voice.").required()};
    return schema;
  }
  void apply(Services&, Voices& voices) const { voices.remove(id); }
  std::string done() const { return "Reference voice '" + id + "' deleted successfully"; }
  Value::Object fields() const { return {{"reference_id", {id}}}; }
};

struct RenameVoice {
  std::string from, to;

  static const Schema<RenameVoice>& schema() {
    static const Schema<RenameVoice> schema{
        server::text("old_reference_id", &RenameVoice::from, "Name that the voice has.").required(),
        server::text("new_reference_id", &RenameVoice::to, "Name that it gets.").required()};
    return schema;
  }
  void apply(Services& services, Voices& voices) const {
    services.voice_names.check_not_reserved(to);
    voices.rename(from, to);
  }
  std::string done() const { return "Reference voice '" + from + "' renamed to '" + to + "' successfully"; }
  Value::Object fields() const { return {{"old_reference_id", {from}}, {"new_reference_id", {to}}}; }
};

// Of the model that the query names, else of the first whose voices can be added.
Voices& voices_of(const Services& services, const Request& request) {
  return services.models.with_references(request.parameter("model").value_or("")).engine->voices();
}

Value outcome(bool success, std::string message, Value::Object fields) {
  Value::Object object = {{"success", {success}}, {"message", {std::move(message)}}};
  for (auto& field : fields) object.push_back(std::move(field));
  return {std::move(object)};
}

// A failure in the form of this family: its fields with success false, and the status.
Response failure(Services& services, const Request& request, const Error& error, Value::Object fields) {
  services.metrics.count_error(name_of(error.code()));
  const HttpError known =
      told_of_voices(services, request, error, {voices_of(services, request), "/v1/references/list"});
  if (known.status >= 500) log_failure(request, error.message());
  Response response =
      packed_response(request, outcome(false, known.message, std::move(fields)), known.status);
  if (known.retry_after_s) response.headers.add("retry-after", std::to_string(*known.retry_after_s));
  return response;
}

// The body, or, where a client cannot send one, the query.
Value input_of(const Request& request) {
  if (!request.body.empty() || request.method != "DELETE") return body_of(request);
  Value::Object object;
  for (const auto& [name, value] : request.query) {
    const bool known = name == "format" || name == "model" || Value{object}.find(name);
    if (!known) object.emplace_back(name, Value{value});
  }
  return {std::move(object)};
}

template <typename Change>
Response change(Services& services, const Request& request) {
  const Change wanted = Change::schema().read(input_of(request));
  try {
    wanted.apply(services, voices_of(services, request));
    return packed_response(request, outcome(true, wanted.done(), wanted.fields()));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unavailable) throw;  // the model had been unloaded
    return failure(services, request, error, wanted.fields());
  }
}

Response list(Services& services, const Request& request) {
  Value::Array ids;
  try {
    for (VoiceInfo& voice : voices_of(services, request).list())
      if (!voice.fixed) ids.push_back({std::move(voice.name)});
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unavailable) throw;  // the model had been unloaded
    return failure(services, request, error, {{"reference_ids", {Value::Array{}}}});
  }
  const std::string message = "Found " + std::to_string(ids.size()) + " reference voices";
  return packed_response(
      request,
      {Value::Object{{"success", {true}}, {"reference_ids", {std::move(ids)}}, {"message", {message}}}});
}

// Reads bodies, clips and folders: all of it on a worker.
template <Response (*kMake)(Services&, const Request&)>
Task<> answer_packed(Services& services, Exchange& exchange) {
  const Request& request = exchange.request();
  Response response = co_await services.workers.run(
      exchange.executor(), [&services, &request] { return kMake(services, request); });
  co_await exchange.respond(std::move(response));
}

FieldDoc model_parameter() {
  return {.name = "model",
          .type = "string",
          .help = "a model of /v1/models; default: the first whose voices can be added"};
}

template <typename Change>
Route changing(std::string method, std::string path, BodySize body, std::string summary) {
  return {.method = std::move(method),
          .path = std::move(path),
          .errors = ErrorStyle::fish,
          .body = body,
          .doc = {.summary = std::move(summary),
                  .body = Change::schema().docs(),
                  .body_types = every_body_type(),
                  .query = {format_parameter(), model_parameter()},
                  .answer_types = packed_types()},
          .handle = answer_packed<change<Change>>,
          .changes = true};
}

}  // namespace

std::vector<Route> reference_routes(const ServerConfig&) {
  std::vector<Route> routes;
  routes.push_back(changing<AddVoice>("POST", "/v1/references/add", BodySize::large, "Add a named voice."));
  routes.back().takes_slot = true;  // clips are decoded
  routes.push_back({.method = "GET",
                    .path = "/v1/references/list",
                    .errors = ErrorStyle::fish,
                    .doc = {.summary = "The names of the voices that were added.",
                            .query = {format_parameter(), model_parameter()},
                            .answer_types = packed_types()},
                    .handle = answer_packed<list>});
  routes.push_back(changing<DeleteVoice>("DELETE", "/v1/references/delete", BodySize::small,
                                         "Delete a named voice, which the body or the query names."));
  RouteDoc& of_delete = routes.back().doc;
  of_delete.body_required = false;
  for (FieldDoc field : DeleteVoice::schema().docs()) {
    field.required = false;
    of_delete.query.push_back(std::move(field));
  }
  routes.push_back(
      changing<RenameVoice>("POST", "/v1/references/update", BodySize::small, "Rename a voice."));
  return routes;
}

}  // namespace shoal::server
