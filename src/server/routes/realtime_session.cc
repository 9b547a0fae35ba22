#include "server/routes/realtime_session.h"

#include <algorithm>
#include <exception>
#include <optional>

#include "base/error.h"
#include "server/access/offered_protocols.h"
#include "server/routes/request_body.h"
#include "server/routes/wanted_models.h"
#include "text/characters.h"
#include "text/utf8.h"

namespace shoal::server {
namespace {

constexpr uint16_t kSilentTooLong = 1000, kAway = 1001, kRefusedStatus = 1008;
constexpr size_t kMostResponses = 8;

bool wants_beta(const Request& request) {
  const std::string* header = request.headers.find("openai-beta");
  return (header && header->find("realtime=v1") != std::string::npos) ||
         offered_protocols(request.headers).realtime_beta;
}

std::string model_asked_for(const Schema<RealtimeQuery>& schema, const Request& request) {
  Value::Object members;
  for (const auto& [name, value] : request.query)
    if (!Value{members}.find(name)) members.emplace_back(name, Value{value});
  return schema.read({std::move(members)}).model;
}

}  // namespace

Schema<RealtimeQuery> realtime_query_schema() {
  const char* why = "this server speaks and does not listen";
  return {text("model", &RealtimeQuery::model, "a model of /v1/models; OpenAI's names are the first"),
          refused<RealtimeQuery>("intent", "string", why, {std::string("conversation")}),
          refused<RealtimeQuery>("call_id", "string", why)};
}

RealtimeSession::RealtimeSession(Services& services, WebSocket& socket, const Schema<RealtimeQuery>& query,
                                 const RealtimeReader& reader)
    : services_(services),
      socket_(socket),
      query_(query),
      reader_(reader),
      writer_(socket),
      sender_(writer_, wants_beta(socket.request()), socket.request().id),
      tasks_(socket.executor()),
      session_id_(sender_.new_id("sess")),
      conversation_id_(sender_.new_id("conv")) {}

Task<> RealtimeSession::run() {
  return tasks_.run(converse(), [this] {
    for (const auto& response : responses_) response->cancel();
  });
}

Task<> RealtimeSession::begin() {
  settings_.model = model_asked_for(query_, socket_.request());
  if (settings_.model.empty()) settings_.model = services_.models.first().name;
  co_await prepare(settings_, "session");
  co_await tell_session("session.created");
}

Task<LiveSettings> RealtimeSession::prepare(const RealtimeSettings& settings, const char* where) {
  const auto work = [&] {
    try {
      return live_settings(services_, socket_.request(), live_start_of(settings, services_.models));
    } catch (const Error& error) {
      rethrow_for_realtime(error, where);
    }
  };
  LiveSettings live = co_await run_with_models(services_, socket_.executor(), work);
  co_return live;
}

Task<> RealtimeSession::tell_session(const char* type) {
  return sender_.send(type, {{"session", session_value(settings_, session_id_, sender_.beta())}});
}

RealtimeSession::Refusal RealtimeSession::refusal_of(const Error& error, std::string event_id) const {
  Refusal refusal{.error = told_error(services_, socket_.request(), error), .event_id = std::move(event_id)};
  if (error.code() == ErrorCode::not_found && refusal.error.param.ends_with(".model"))
    refusal.word = "model_not_found";
  if (const auto* known = dynamic_cast<const RealtimeError*>(&error)) refusal.word = known->word();
  return refusal;
}

Task<> RealtimeSession::tell(Refusal refusal) {
  return sender_.error(refusal.error, refusal.word, refusal.event_id);
}

// An error that ends the connection.
Task<> RealtimeSession::leave(uint16_t code, Refusal why) {
  leaving_ = true;
  std::string reason = why.error.message;
  co_await tell(std::move(why));
  co_await writer_.close(code, std::move(reason));
}

Task<> RealtimeSession::converse() {
  std::optional<Refusal> refused;
  try {
    co_await begin();
  } catch (const Error& error) {
    refused = refusal_of(error, "");
  }
  if (refused) co_await leave(kRefusedStatus, std::move(*refused));
  tasks_.spawn(watch());
  while (true) {
    std::optional<WebSocket::Message> message = co_await socket_.read();
    if (!message) co_return;
    if (leaving_) continue;
    last_used_ = Clock::now();
    std::optional<Refusal> wrong;
    std::string event_id;
    try {
      co_await take(*message, event_id);
    } catch (const Error& error) {
      if (writer_.broken()) throw;
      wrong = refusal_of(error, event_id);
    }
    if (wrong) co_await tell(std::move(*wrong));
  }
}

Task<> RealtimeSession::take(const WebSocket::Message& message, std::string& event_id) {
  if (!message.text) fail(ErrorCode::invalid_argument, "a binary message: expected JSON in a text message");
  const auto read = [&] { return reader_.read(message.data, settings_, event_id); };
  RealtimeEvent event;
  if (message.data.size() <= kQuickBodyBytes)
    event = read();
  else
    event = co_await services_.workers.run(socket_.executor(), read);
  co_await obey(std::move(event));
}

Task<> RealtimeSession::obey(RealtimeEvent event) {
  using Verb = RealtimeEvent::Verb;
  switch (event.verb) {
    case Verb::update_session:
      co_await update(std::move(event.settings));
      break;
    case Verb::create_item:
      co_await create_item(std::move(event));
      break;
    case Verb::retrieve_item:
      co_await retrieve_item(event);
      break;
    case Verb::delete_item:
      co_await delete_item(event);
      break;
    case Verb::truncate_item:
      co_await truncate_item(event);
      break;
    case Verb::respond:
      co_await respond(std::move(event.settings));
      break;
    case Verb::cancel:
      cancel(event.response_id);
      break;
  }
}

Task<> RealtimeSession::update(RealtimeSettings settings) {
  std::ranges::sort(settings.unused);
  const auto again = std::ranges::unique(settings.unused);
  settings.unused.erase(again.begin(), again.end());
  co_await prepare(settings, "session");
  settings_ = std::move(settings);
  co_await tell_session("session.updated");
}

// previous: null for what the API tells without one.
Task<> RealtimeSession::tell_of(const char* type, const RealtimeItem& item, const std::string* previous) {
  Value::Object members;
  if (previous) members.emplace_back("previous_item_id", text_or_null(*previous));
  members.emplace_back("item", item_value(item));
  return sender_.send(type, std::move(members));
}

Task<> RealtimeSession::create_item(RealtimeEvent event) {
  if (event.item.id.empty()) event.item.id = sender_.new_id("item");
  const std::string previous = conversation_.add(event.item, event.previous_item_id);
  co_await tell_of("conversation.item.added", event.item, &previous);
  co_await tell_of("conversation.item.done", event.item, &previous);
}

Task<> RealtimeSession::retrieve_item(const RealtimeEvent& event) {
  return tell_of("conversation.item.retrieved",
                 conversation_.get(event.item_id, "item_retrieve_invalid_item_id"), nullptr);
}

Task<> RealtimeSession::delete_item(const RealtimeEvent& event) {
  conversation_.get(event.item_id, "item_delete_invalid_item_id");
  conversation_.remove(event.item_id);
  return sender_.send("conversation.item.deleted", {{"item_id", {event.item_id}}});
}

// What a person has heard of a response: its words are forgotten, because nobody knows which were heard.
Task<> RealtimeSession::truncate_item(const RealtimeEvent& event) {
  RealtimeItem& item = conversation_.get(event.item_id, "item_truncate_invalid_item_id");
  if (item.role != "assistant" || item.sound_s == 0)
    throw RealtimeError("item_truncate_invalid_item_id", "item_id",
                        "only what a response said can be truncated");
  const auto most_ms = static_cast<int64_t>(item.sound_s * 1000);
  if (event.audio_end_ms > most_ms)
    throw RealtimeError(
        "item_truncate_invalid_audio_end_ms", "audio_end_ms",
        concat("expected at most ", most_ms, ", the length of its sound, got ", event.audio_end_ms));
  item.sound_s = static_cast<double>(event.audio_end_ms) / 1000;
  item.truncated = true;
  item.content[0].text.clear();
  return sender_.send("conversation.item.truncated", {{"item_id", {event.item_id}},
                                                      {"content_index", {event.content_index}},
                                                      {"audio_end_ms", {event.audio_end_ms}}});
}

RealtimeResponse* RealtimeSession::active() {
  for (const auto& response : responses_)
    if (response->in_conversation()) return response.get();
  return nullptr;
}

void RealtimeSession::cancel(const std::string& response_id) {
  const auto meant = [&](const auto& response) {
    return response_id.empty() ? response->in_conversation() : response->id() == response_id;
  };
  const auto found = std::ranges::find_if(responses_, meant);
  if (found == responses_.end() || (*found)->stopping())
    throw RealtimeError("response_cancel_not_active", "", "Cancellation failed: no active response found");
  (*found)->cancel();
}

// The texts to speak. Throws RealtimeError: there are none.
std::vector<std::string> RealtimeSession::words_of(const RealtimeSettings& settings) {
  std::vector<std::string> words;
  const auto add = [&](const RealtimeItem& item) {
    if (item.role == "user") words.push_back(item.text());
  };
  if (settings.input) {
    for (const RealtimeInput& one : *settings.input)
      add(one.reference.empty() ? one.item
                                : conversation_.get(one.reference, "response_create_invalid_item_id"));
  } else {
    for (const RealtimeItem* item : conversation_.waiting()) add(*item);
  }
  const auto blank = [](const std::string& text) { return text::strip_white_space(text).empty(); };
  if (std::ranges::all_of(words, blank))
    throw RealtimeError("response_create_nothing_to_speak", settings.input ? "response.input" : "response",
                        "this server speaks the user's texts as they are, and there is none that was not "
                        "spoken; send conversation.item.create with input_text, or response.input");
  return words;
}

void RealtimeSession::mark_spoken(const RealtimeSettings& settings) {
  if (settings.out_of_band) return;
  if (!settings.input)
    for (RealtimeItem* item : conversation_.waiting()) item->spoken = true;
  for (const RealtimeInput& one : settings.input.value_or(std::vector<RealtimeInput>()))
    if (RealtimeItem* item = conversation_.find(one.reference)) item->spoken = true;
}

RealtimeSession::Responses::iterator RealtimeSession::add(const RealtimeSettings& settings, LiveSettings live,
                                                          const std::vector<std::string>& words) {
  int64_t characters = 0;
  for (const std::string& text : words) characters += text::count_characters(text);
  auto response = std::make_unique<RealtimeResponse>(sender_, settings.out_of_band ? nullptr : &conversation_,
                                                     settings, conversation_id_, characters);
  auto utterance = std::make_unique<LiveUtterance>(services_, socket_.request(), *response, std::move(live));
  try {
    for (size_t i = 0; i < words.size(); ++i) {
      utterance->add(i + 1 < words.size() ? words[i] + "\n" : words[i]);
      utterance->flush();
    }
    utterance->end();
  } catch (const Error& error) {
    rethrow_for_realtime(error, "response");
  }
  response->speak_with(std::move(utterance));
  responses_.push_back(std::move(response));
  return std::prev(responses_.end());
}

Task<> RealtimeSession::respond(RealtimeSettings settings) {
  if (services_.draining) fail(ErrorCode::unavailable, "the server is shutting down");
  if (!settings.out_of_band)
    while (active() && active()->stopping()) co_await tasks_.wait_for_an_end();
  if (const RealtimeResponse* now = settings.out_of_band ? nullptr : active())
    throw RealtimeError("conversation_already_has_active_response", "",
                        concat("Conversation already has an active response in progress: ", now->id(),
                               "; wait for its response.done, or send response.cancel"));
  if (responses_.size() >= kMostResponses)
    fail(ErrorCode::resource_exhausted, "response: at most ", kMostResponses, " speak at once");
  words_of(settings);  // throws before a model is asked
  LiveSettings live = co_await prepare(settings, "response");
  const std::vector<std::string> words = words_of(settings);
  const Responses::iterator response = add(settings, std::move(live), words);
  mark_spoken(settings);
  std::exception_ptr thrown;
  try {
    co_await (*response)->begin();
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown) {
    responses_.erase(response);
    std::rethrow_exception(thrown);
  }
  tasks_.spawn(speak(response));
}

Task<> RealtimeSession::speak(Responses::iterator response) {
  co_await goes_well((*response)->utterance().speak());
  responses_.erase(response);
  last_used_ = Clock::now();
  tasks_.hurry();  // a server that goes down says goodbye at once
}

Task<> RealtimeSession::watch() {
  const auto patience = std::chrono::seconds(services_.config.idle_timeout_s);
  while (true) {
    const bool goes_on = co_await tasks_.tick();
    if (!goes_on || writer_.broken()) co_return;
    if (services_.grace_over)
      for (const auto& response : responses_) response->cancel();
    if (!responses_.empty() || leaving_) continue;
    if (services_.draining) {
      Refusal why = refusal_of(Error(ErrorCode::unavailable, "the server is shutting down"), "");
      co_return co_await leave(kAway, std::move(why));
    }
    if (Clock::now() - last_used_ >= patience) {
      Refusal why = refusal_of(
          Error(ErrorCode::deadline_exceeded, concat("nothing was said for ", patience.count(), " seconds")),
          "");
      why.word = "session_expired";
      co_return co_await leave(kSilentTooLong, std::move(why));
    }
  }
}

}  // namespace shoal::server
