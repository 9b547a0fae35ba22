#include "server/routes/eleven_messages.h"

#include <cmath>
#include <utility>

#include "base/base64.h"
#include "server/routes/speech_warnings.h"

namespace shoal::server {
namespace {

using Message = ElevenMessage;

// A field of the API's requests in a message.
Field<Message> of_request(Field<ElevenRequest> field) {
  return {std::move(field.doc), std::move(field.read)};
}

// The key was checked when the connection was opened.
Field<Message> checked_before(std::string name) {
  FieldDoc doc{.name = std::move(name), .type = "string", .help = "no effect: the header decides"};
  return {std::move(doc),
          [](const Value& value, const std::string& where, Message&) { read_text(value, where); }};
}

void append(TimedCharacters& to, const TimedCharacters& more) {
  for (size_t i = 0; i < more.characters.size(); ++i)
    to.add(more.characters[i], more.start_s[i], more.end_s[i]);
}

// Null without a character. from_s: moves to the end of the last one.
Value milliseconds_value(TimedCharacters times, double& from_s) {
  if (times.characters.empty()) return {};
  Value::Array chars, starts, durations;
  const auto ms = [from = from_s](double at_s) {
    return static_cast<int64_t>(std::llround((at_s - from) * 1e3));
  };
  for (size_t i = 0; i < times.characters.size(); ++i) {
    chars.push_back({std::move(times.characters[i])});
    starts.push_back({ms(times.start_s[i])});
    durations.push_back({ms(times.end_s[i]) - ms(times.start_s[i])});
  }
  from_s = times.end_s.back();
  return {Value::Object{{"chars", {std::move(chars)}},
                        {"charStartTimesMs", {std::move(starts)}},
                        {"charDurationsMs", {std::move(durations)}}}};
}

}  // namespace

Schema<Message> eleven_message_schema(bool multi) {
  const std::string early = "sound begins as soon as a sentence is complete; flush speaks what there is";
  std::vector<Field<Message>> fields = {
      text("text", &Message::words, "the next piece"),
      boolean("flush", &Message::flush, "speak the text so far"),
      of_request(eleven_settings_field()),
      of_request(eleven_dictionaries_field()),
      unused<Message>("generation_config", "object", early, Value{Value::Object{}}),
      checked_before("xi_api_key"),
      checked_before("xi-api-key"),
      checked_before("authorization")};
  if (multi) {
    fields.push_back(
        text("context_id", &Message::context_id, "which utterance; default: one without a name"));
    fields.push_back(
        boolean("close_context", &Message::close_context, "what was flushed is spoken to its end"));
    fields.push_back(boolean("close_socket", &Message::close_socket, "the same for all, and the connection"));
  } else {
    fields.push_back(unused<Message>("generator_config", "object", early, Value{Value::Object{}}));
    fields.push_back(unused<Message>("try_trigger_generation", "boolean", early));
  }
  return Schema<Message>(std::move(fields));
}

std::string eleven_error(const HttpError& error, const std::string* context_id,
                         const std::string& request_id) {
  Value::Object members{{"error", {elevenlabs_status(error)}},
                        {"message", {error.message}},
                        {"code", {int64_t{1008}}},
                        {"request_id", {request_id}}};
  if (!error.param.empty()) members.emplace_back("param", Value{error.param});
  if (context_id) members.emplace_back("contextId", Value{*context_id});
  return write_json({std::move(members)});
}

ElevenListener::ElevenListener(LiveWriter& writer, const std::string* context_id, std::string request_id,
                               bool times)
    : LiveListener(writer),
      context_id_(context_id ? std::optional(*context_id) : std::nullopt),
      request_id_(std::move(request_id)),
      times_(times) {}

std::string ElevenListener::json_with(Value audio, Value final, const std::vector<std::string>& warnings) {
  Value::Object members{{"audio", std::move(audio)}, {"isFinal", final}};
  if (context_id_) members.emplace_back("contextId", Value{*context_id_});
  if (context_id_ && !final.is_null()) members.emplace_back("is_final", std::move(final));
  members.emplace_back("alignment", milliseconds_value(std::exchange(written_, {}), written_from_s_));
  members.emplace_back("normalizedAlignment", milliseconds_value(std::exchange(spoken_, {}), spoken_from_s_));
  if (!warnings.empty()) members.emplace_back("warnings", warnings_value(warnings));
  return write_json({std::move(members)});
}

std::string ElevenListener::json_of(const std::string& sound) {
  return json_with({to_base64(sound)}, {}, {});
}

std::string ElevenListener::last_json(const LiveDone& done) {
  if (times_) append(written_, text_.rest(done.seconds));
  return json_with({}, {true}, done.warnings);
}

void ElevenListener::begin(const std::string& text, double at_s) {
  append(written_, text_.rest(at_s));
  text_.begin(text, at_s);
}

Task<> ElevenListener::segment(int64_t, const std::string& text, double at_s) {
  if (times_) begin(text, at_s);
  co_return;
}

Task<> ElevenListener::sound(std::string bytes, std::vector<SpokenWord> words) {
  append(written_, text_.take(words));
  append(spoken_, spoken_characters(words, spoken_to_s_, spoken_to_s_ == 0));
  if (!words.empty()) spoken_to_s_ = words.back().end_s;
  if (bytes.empty()) co_return;  // its words are told with the next
  std::string json = json_of(bytes);
  co_await writer().text(std::move(json));
}

Task<> ElevenListener::failed(const HttpError& error) {
  failed_ = true;
  return writer().text(eleven_error(error, context_id_ ? &*context_id_ : nullptr, request_id_));
}

Task<> ElevenListener::done(const LiveDone& done) {
  if (failed_) co_return;
  std::string json = last_json(done);
  co_await writer().text(std::move(json));
}

}  // namespace shoal::server
