#include "server/routes/realtime_response.h"

#include <cmath>
#include <utility>

#include "base/base64.h"
#include "server/routes/speech_warnings.h"

namespace shoal::server {

RealtimeResponse::RealtimeResponse(RealtimeSender& sender, RealtimeConversation* conversation,
                                   const RealtimeSettings& settings, std::string conversation_id,
                                   int64_t characters)
    : LiveListener(sender.writer()),
      sender_(sender),
      conversation_(conversation),
      settings_(settings),
      conversation_id_(std::move(conversation_id)),
      id_(sender.new_id("resp")),
      characters_(characters),
      bytes_per_second_(settings.rate_hz * (settings.format == "audio/pcm" ? 2 : 1)) {
  item_ = {.id = sender.new_id("item"),
           .role = "assistant",
           .status = "in_progress",
           .content = {{.type = sender.beta() ? "audio" : "output_audio", .text = {}}}};
}

void RealtimeResponse::cancel() {
  stopping_ = true;
  utterance_->cancel();
}

Value::Object RealtimeResponse::at_part() const {
  return {{"response_id", {id_}},
          {"item_id", {item_.id}},
          {"output_index", {int64_t{0}}},
          {"content_index", {int64_t{0}}}};
}

Value RealtimeResponse::usage() const {
  const auto made = static_cast<int64_t>(std::ceil(seconds() * kTokensPerSecond));
  const Value none{int64_t{0}};
  Value::Object read{{"text_tokens", {characters_}},
                     {"audio_tokens", none},
                     {"image_tokens", none},
                     {"cached_tokens", none}};
  Value::Object cached{{"text_tokens", none}, {"audio_tokens", none}, {"image_tokens", none}};
  read.emplace_back("cached_tokens_details", Value{std::move(cached)});
  return {Value::Object{
      {"total_tokens", {characters_ + made}},
      {"input_tokens", {characters_}},
      {"output_tokens", {made}},
      {"input_token_details", {std::move(read)}},
      {"output_token_details", {Value::Object{{"text_tokens", none}, {"audio_tokens", {made}}}}}}};
}

Value RealtimeResponse::response() const {
  Value::Object members{{"object", {std::string("realtime.response")}}, {"id", {id_}}};
  add_state(members);
  members.emplace_back("conversation_id", conversation_ ? Value{conversation_id_} : Value{});
  if (sender_.beta()) {
    members.emplace_back("modalities", Value{Value::Array{{std::string("audio")}, {std::string("text")}}});
    members.emplace_back("voice", Value{settings_.voice});
    members.emplace_back("output_audio_format", Value{beta_format_of(settings_)});
  } else {
    Value::Object output{{"format", format_value(settings_)}, {"voice", {settings_.voice}}};
    members.emplace_back("output_modalities", Value{Value::Array{{std::string("audio")}}});
    members.emplace_back("audio", Value{Value::Object{{"output", {std::move(output)}}}});
  }
  members.emplace_back("max_output_tokens", max_tokens_value(settings_));
  members.emplace_back("metadata", settings_.metadata);
  if (!warnings_.empty()) members.emplace_back("warnings", warnings_value(warnings_));
  return {std::move(members)};
}

void RealtimeResponse::add_state(Value::Object& members) const {
  const bool over = status_ != "in_progress";
  Value::Object details{{"type", {status_}}};
  if (status_ == "cancelled") details.emplace_back("reason", Value{std::string("client_cancelled")});
  if (status_ == "incomplete") details.emplace_back("reason", Value{std::string("max_output_tokens")});
  if (failure_) details.emplace_back("error", openai_error(*failure_, sender_.request_id()));
  members.emplace_back("status", Value{status_});
  const bool plain = !over || status_ == "completed";
  members.emplace_back("status_details", plain ? Value{} : Value{std::move(details)});
  members.emplace_back("output", Value{over ? Value::Array{item_value(item_)} : Value::Array{}});
  members.emplace_back("usage", over ? usage() : Value{});
}

Value RealtimeResponse::part() const {
  return {Value::Object{{"type", {std::string("audio")}}, {"transcript", {item_.content[0].text}}}};
}

Task<> RealtimeResponse::tell_response(const char* type) {
  return sender_.send(type, {{"response", response()}});
}

Task<> RealtimeResponse::tell_item(const char* type) {
  RealtimeItem told = item_;
  if (told.status == "in_progress") told.content.clear();
  return sender_.send(type,
                      {{"response_id", {id_}}, {"output_index", {int64_t{0}}}, {"item", item_value(told)}});
}

Task<> RealtimeResponse::tell_in_conversation(const char* type) {
  RealtimeItem told = item_;
  if (told.status == "in_progress") told.content.clear();
  return sender_.send(type, {{"previous_item_id", text_or_null(previous_id_)}, {"item", item_value(told)}});
}

Task<> RealtimeResponse::tell_part(const char* type) {
  Value::Object members = at_part();
  members.emplace_back("part", part());
  return sender_.send(type, std::move(members));
}

Task<> RealtimeResponse::tell_delta(const char* type, std::string delta) {
  Value::Object members = at_part();
  members.emplace_back("delta", Value{std::move(delta)});
  return sender_.send(type, std::move(members));
}

// member: what is told again as a whole; null for sound.
Task<> RealtimeResponse::tell_end(const char* type, const char* member) {
  Value::Object members = at_part();
  if (member) members.emplace_back(member, Value{item_.content[0].text});
  return sender_.send(type, std::move(members));
}

Task<> RealtimeResponse::begin() {
  if (conversation_) previous_id_ = conversation_->add(item_);
  co_await tell_response("response.created");
  co_await tell_item("response.output_item.added");
  if (conversation_) co_await tell_in_conversation("conversation.item.added");
  co_await tell_part("response.content_part.added");
}

Task<> RealtimeResponse::segment(int64_t, const std::string& text, double) {
  item_.content[0].text += text;
  return tell_delta("response.output_audio_transcript.delta", text);
}

// Whether the sound has reached its limit: `bytes` are then the last.
bool RealtimeResponse::is_cut(std::string& bytes) {
  if (!settings_.max_tokens) return false;
  size_t most = static_cast<size_t>(*settings_.max_tokens) * static_cast<size_t>(bytes_per_second_) /
                static_cast<size_t>(kTokensPerSecond);
  if (settings_.format == "audio/pcm") most -= most % 2;
  if (bytes_ + bytes.size() <= most) return false;
  bytes.resize(most - bytes_);
  return true;
}

Task<> RealtimeResponse::sound(std::string bytes, std::vector<SpokenWord>) {
  if (cut_ || bytes.empty()) co_return;
  cut_ = is_cut(bytes);
  bytes_ += bytes.size();
  if (cut_) utterance_->cancel();
  keep_in_conversation();
  std::string delta = to_base64(bytes);
  if (!bytes.empty()) co_await tell_delta("response.output_audio.delta", std::move(delta));
}

Task<> RealtimeResponse::failed(const HttpError& error) {
  failure_ = error;
  co_return;
}

// The conversation's item is as far as this response is, unless a client has deleted it.
void RealtimeResponse::keep_in_conversation() {
  RealtimeItem* kept = conversation_ ? conversation_->find(item_.id) : nullptr;
  if (!kept) return;
  kept->sound_s = seconds();
  kept->status = item_.status;
  if (!kept->truncated) kept->content = item_.content;
}

void RealtimeResponse::settle(const LiveDone& done) {
  status_ = cut_ ? "incomplete" : done.outcome;
  warnings_ = done.warnings;
  item_.status = status_ == "completed" ? "completed" : "incomplete";
  keep_in_conversation();
}

Task<> RealtimeResponse::done(const LiveDone& done) {
  settle(done);
  co_await tell_end("response.output_audio.done", nullptr);
  co_await tell_end("response.output_audio_transcript.done", "transcript");
  co_await tell_part("response.content_part.done");
  if (conversation_) co_await tell_in_conversation("conversation.item.done");
  co_await tell_item("response.output_item.done");
  co_await tell_response("response.done");
}

}  // namespace shoal::server
