#include "server/routes/realtime_events.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "shoal/seeds.h"

namespace shoal::server {
namespace {

using RealtimeVerb = RealtimeEvent::Verb;
constexpr std::pair<std::string_view, RealtimeVerb> kRealtimeVerbs[] = {
    {"session.update", RealtimeVerb::update_session},
    {"conversation.item.create", RealtimeVerb::create_item},
    {"conversation.item.retrieve", RealtimeVerb::retrieve_item},
    {"conversation.item.delete", RealtimeVerb::delete_item},
    {"conversation.item.truncate", RealtimeVerb::truncate_item},
    {"response.create", RealtimeVerb::respond},
    {"response.cancel", RealtimeVerb::cancel}};
constexpr std::pair<std::string_view, const char*> kRefusedEvents[] = {
    {"input_audio_buffer.",
     "this server speaks and does not listen; send conversation.item.create with text"},
    {"transcription_session.", "this server speaks and does not listen"},
    {"output_audio_buffer.", "sound goes out as it is made and waits nowhere; send response.cancel"}};
constexpr double kLongestSoundMs = 1e9;
constexpr size_t kLongestEventId = 512;

const std::vector<std::string>& event_types() {
  static const std::vector<std::string> types = [] {
    std::vector<std::string> all;
    for (const auto& [word, verb] : kRealtimeVerbs) all.emplace_back(word);
    return all;
  }();
  return types;
}

RealtimeVerb verb_of_event(const Value& event) {
  read_object(event, "");
  const Value* type = event.find("type");
  if (!type || type->is_null()) fail_missing("", "type");
  const std::string& word = read_text(*type, "type");
  for (const auto& [prefix, why] : kRefusedEvents)
    if (word.starts_with(prefix)) throw BodyError(ErrorCode::unsupported, "type", why);
  read_choice(*type, "type", event_types());
  const auto same = [&](const auto& known) { return known.first == word; };
  return std::ranges::find_if(kRealtimeVerbs, same)->second;
}

// A member of an event that another schema reads.
Field<RealtimeEvent> part(std::string name, bool required) {
  FieldDoc doc{
      .name = std::move(name), .type = "object", .help = "see docs/CLIENTS.md", .required = required};
  return {std::move(doc), [](const Value&, const std::string&, RealtimeEvent&) {}};
}

Field<RealtimeEvent> ignored_text(std::string name) {
  return {{.name = std::move(name), .type = "string", .help = "of the event"},
          [](const Value& value, const std::string& where, RealtimeEvent&) { read_text(value, where); }};
}

Schema<RealtimeEvent> schema_of(RealtimeVerb verb) {
  using Event = RealtimeEvent;
  std::vector<Field<Event>> fields = {ignored_text("type"), ignored_text("event_id")};
  const auto add = [&](Field<Event> field) { fields.push_back(std::move(field)); };
  if (verb == RealtimeVerb::update_session) add(part("session", true));
  if (verb == RealtimeVerb::respond) add(part("response", false));
  if (verb == RealtimeVerb::cancel)
    add(text("response_id", &Event::response_id, "default: the conversation's"));
  if (verb == RealtimeVerb::create_item) {
    add(part("item", true));
    add(text("previous_item_id", &Event::previous_item_id, "it goes after this one; root: to the start"));
  }
  if (verb == RealtimeVerb::retrieve_item || verb == RealtimeVerb::delete_item ||
      verb == RealtimeVerb::truncate_item)
    add(text("item_id", &Event::item_id, "of the conversation").required());
  if (verb == RealtimeVerb::truncate_item) {
    add(integer("content_index", &Event::content_index, {0, 0}, "0").required());
    add(integer("audio_end_ms", &Event::audio_end_ms, {0, kLongestSoundMs}, "what was heard").required());
  }
  return Schema<Event>(std::move(fields));
}

const Schema<RealtimeEvent>& event_schema(RealtimeVerb verb) {
  static const std::vector<Schema<RealtimeEvent>> schemas = [] {
    std::vector<Schema<RealtimeEvent>> all;
    for (const auto& [word, each] : kRealtimeVerbs) all.push_back(schema_of(each));
    return all;
  }();
  return schemas[static_cast<size_t>(verb)];
}

// Today's names of the beta's events.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kBetaNames = {
    {{"response.output_audio.delta", "response.audio.delta"},
     {"response.output_audio.done", "response.audio.done"},
     {"response.output_audio_transcript.delta", "response.audio_transcript.delta"},
     {"response.output_audio_transcript.done", "response.audio_transcript.done"},
     {"conversation.item.added", "conversation.item.created"}}};

std::string_view beta_name_of(std::string_view type) {
  const auto same = [&](const auto& names) { return names.first == type; };
  const auto found = std::ranges::find_if(kBetaNames, same);
  return found == kBetaNames.end() ? type : found->second;
}

std::string connection_id() {
  char id[24];
  std::snprintf(id, sizeof id, "%014llx", static_cast<unsigned long long>(drawn_seed()));
  return id;
}

Task<> nothing() { co_return; }

}  // namespace

RealtimeReader::RealtimeReader()
    : session_(realtime_session_schema()), response_(realtime_response_schema()) {}

RealtimeEvent RealtimeReader::read(std::string_view json, const RealtimeSettings& session,
                                   std::string& event_id) const {
  const Value value = read_json(json);
  const Value* id = value.find("event_id");
  const std::string* named = id ? id->as<std::string>() : nullptr;
  if (named && named->size() <= kLongestEventId) event_id = *named;
  return read_event(value, session);
}

RealtimeEvent RealtimeReader::read_event(const Value& value, const RealtimeSettings& session) const {
  const RealtimeVerb verb = verb_of_event(value);
  RealtimeEvent event = event_schema(verb).read(value);
  event.verb = verb;
  if (verb == RealtimeVerb::create_item) event.item = read_realtime_item(*value.find("item"), "item");
  if (verb == RealtimeVerb::update_session)
    event.settings = session_.read_onto(session, *value.find("session"), "session");
  if (verb == RealtimeVerb::respond) {
    const Value* response = value.find("response");
    event.settings = session;
    if (response && !response->is_null())
      event.settings = response_.read_onto(session, *response, "response");
  }
  return event;
}

RealtimeSender::RealtimeSender(LiveWriter& writer, bool beta, std::string request_id)
    : writer_(writer), beta_(beta), request_id_(std::move(request_id)), connection_(connection_id()) {}

std::string RealtimeSender::new_id(std::string_view kind) { return concat(kind, "_", connection_, ++ids_); }

Task<> RealtimeSender::send(std::string_view type, Value::Object members) {
  if (beta_ && type == "conversation.item.done") return nothing();
  const std::string_view name = beta_ ? beta_name_of(type) : type;
  members.emplace(members.begin(), "event_id", Value{new_id("event")});
  members.emplace(members.begin(), "type", Value{std::string(name)});
  return writer_.text(write_json({std::move(members)}));
}

Task<> RealtimeSender::error(const HttpError& error, const char* word, const std::string& event_id) {
  Value told = openai_error(error, request_id_);
  Value::Object& members = *std::get_if<Value::Object>(&told.data);
  for (auto& [name, value] : members)
    if (word && name == "code") value = Value{std::string(word)};
  members.emplace_back("event_id", text_or_null(event_id));
  return send("error", {{"error", std::move(told)}});
}

}  // namespace shoal::server
