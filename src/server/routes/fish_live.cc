#include "server/routes/fish_live.h"

#include <array>

#include "server/body/schema_fields.h"
#include "server/routes/speech_warnings.h"

namespace shoal::server {
namespace {

using FishVerb = FishMessage::Verb;
constexpr std::array<std::pair<std::string_view, FishVerb>, 4> kFishEvents = {{{"start", FishVerb::start},
                                                                               {"text", FishVerb::text},
                                                                               {"flush", FishVerb::flush},
                                                                               {"stop", FishVerb::stop}}};

FishVerb fish_verb_of(const Value& message) {
  std::vector<std::string> known;
  for (const auto& [name, verb] : kFishEvents) known.emplace_back(name);
  const Value* event = message.find("event");
  if (!event || event->is_null()) fail_missing("", "event");
  const std::string& name = read_choice(*event, "event", known);
  for (const auto& [known_name, verb] : kFishEvents)
    if (known_name == name) return verb;
  return FishVerb::flush;  // read_choice knows no other
}

// "text" is for /v1/tts; here clients may leave it out.
Value with_text(const Value& request) {
  Value::Object object = read_object(request, "request");
  for (auto& [name, value] : object) {
    if (name != "text") continue;
    if (value.is_null()) value = Value{std::string()};
    return {std::move(object)};
  }
  object.emplace_back("text", Value{std::string()});
  return {std::move(object)};
}

Value::Object finish(const char* reason) {
  return {{"event", {std::string("finish")}}, {"reason", {std::string(reason)}}};
}

std::string audio_message(std::string bytes) {
  return write_msgpack(
      {Value::Object{{"event", {std::string("audio")}}, {"audio", {Bytes{std::move(bytes)}}}}});
}

}  // namespace

FishMessage FishReader::read(std::string_view packed) const {
  const Value message = read_msgpack(packed);
  const Value::Object& members = read_object(message, "");
  FishMessage read;
  read.verb = fish_verb_of(message);
  const char* const content = read.verb == FishVerb::start  ? "request"
                              : read.verb == FishVerb::text ? "text"
                                                            : "event";
  for (const auto& [name, value] : members)
    if (name != "event" && name != content) fail_unknown("", name, {"event", content});
  const Value* value = message.find(content);
  if (!value || value->is_null()) fail_missing("", content);
  if (read.verb == FishVerb::text) read.text = read_text(*value, "text");
  if (read.verb != FishVerb::start) return read;
  FishRequest defaults;
  defaults.format = "mp3";
  defaults.streaming = true;
  defaults.bare_wav = false;
  read.request = request_.read_onto(std::move(defaults), with_text(*value), "request");
  if (read.request.ssml)
    throw BodyError(ErrorCode::unsupported, "request.ssml", "SSML is read as a whole; send it to /v1/tts");
  if (!read.request.reference_ids.empty())  // a segment of the text knows nothing of the tags before it
    throw BodyError(ErrorCode::unsupported, "request.reference_id",
                    "one voice speaks a live text; send texts of several speakers to /v1/tts");
  return read;
}

std::string fish_finish(const LiveDone& done) {
  Value::Object message = finish("stop");
  message.emplace_back("seconds", Value{done.seconds});
  message.emplace_back("seed", Value{static_cast<int64_t>(done.seed)});
  if (!done.warnings.empty()) message.emplace_back("warnings", warnings_value(done.warnings));
  return write_msgpack({std::move(message)});
}

std::string fish_finish(const HttpError& error, const std::string& request_id) {
  Value::Object message = finish("error");
  message.emplace_back("message", Value{error.message});
  message.emplace_back("code", Value{std::string(name_of(error.code))});
  message.emplace_back("status", Value{int64_t{error.status}});
  if (!error.param.empty()) message.emplace_back("param", Value{error.param});
  message.emplace_back("request_id", Value{request_id});
  return write_msgpack({std::move(message)});
}

uint16_t close_code_of(const HttpError& error) {
  constexpr uint16_t kPolicyViolated = 1008, kFailed = 1011, kTryAgain = 1013;
  if (error.code == ErrorCode::resource_exhausted || error.code == ErrorCode::unavailable) return kTryAgain;
  return error.status < 500 ? kPolicyViolated : kFailed;
}

FishListener::FishListener(LiveWriter& writer, std::string request_id, std::chrono::milliseconds pause)
    : LiveListener(writer), request_id_(std::move(request_id)), pause_(pause), rest_(writer.executor()) {}

Task<> FishListener::send(std::string packed) {
  const auto due = sent_ + pause_;
  while (Clock::now() < due && !writer().broken()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now());
    co_await rest_.wait(left);
  }
  co_await writer().sound(std::move(packed));
  sent_ = Clock::now();
}

Task<> FishListener::segment(int64_t, const std::string&, double) { co_return; }

Task<> FishListener::sound(std::string bytes, std::vector<SpokenWord>) {
  if (bytes.empty() || error_) co_return;
  std::string packed = audio_message(std::move(bytes));
  co_await send(std::move(packed));
}

Task<> FishListener::failed(const HttpError& error) {
  fail_with(error);
  co_return;
}

void FishListener::fail_with(const HttpError& error) {
  if (!error_) error_ = error;
}

Task<> FishListener::done(const LiveDone& done) {
  if (!error_ && done.outcome == "cancelled")
    error_ =
        HttpError{.status = 503, .code = ErrorCode::unavailable, .message = "the server is shutting down"};
  std::string packed;
  if (error_)
    packed = fish_finish(*error_, request_id_);
  else
    packed = fish_finish(done);
  co_await send(std::move(packed));
}

}  // namespace shoal::server
