#include "server/routes/eleven_session.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "server/routes/request_body.h"
#include "server/routes/route_pattern.h"
#include "server/routes/wanted_models.h"

namespace shoal::server {
namespace {

constexpr uint16_t kClosed = 1000, kLeaves = 1001, kPolicy = 1008;
constexpr size_t kMostContexts = 16;

std::string_view pattern_of(bool multi) {
  return multi ? "/v1/text-to-speech/{voice_id}/multi-stream-input"
               : "/v1/text-to-speech/{voice_id}/stream-input";
}

LiveStart start_of(const ElevenRequest& asked, const ElevenSpeaker& speaker, const ElevenMessage& message) {
  const ElevenFormat format = format_of(asked);
  LiveStart start;
  start.model = speaker.model->name;
  start.voice = speaker.voice;
  start.language = speaker.language;
  start.format = audio::name_of(format.format);
  start.sample_rate = format.sample_rate_hz;
  start.bitrate_bps = format.bitrate_bps;
  start.seed = asked.seed;
  start.normalize = normalisation_of(asked);
  start.speed = message.speed;
  start.unused = asked.unused;
  start.unused.insert(start.unused.end(), message.unused.begin(), message.unused.end());
  return start;
}

}  // namespace

ElevenSession::ElevenSession(Services& services, WebSocket& socket, const Schema<ElevenRequest>& query,
                             const Schema<ElevenMessage>& messages, bool multi)
    : services_(services),
      socket_(socket),
      query_(query),
      messages_(messages),
      multi_(multi),
      writer_(socket),
      tasks_(socket.executor()) {}

Task<> ElevenSession::run() {
  return tasks_.run(converse(), [this] {
    for (Context& context : contexts_) context.utterance->cancel();
  });
}

Task<> ElevenSession::begin() {
  asked_ = read_query(query_, socket_.request());
  const std::string voice_id(match_path(pattern_of(multi_), socket_.request().path).value());
  const auto find_speaker = [&] {
    ElevenSpeaker speaker = speaker_of(services_, asked_, voice_id);
    ElevenMessage nothing;
    try {
      live_settings(services_, socket_.request(), start_of(asked_, speaker, nothing));
    } catch (const Error& error) {
      rethrow_for_eleven(error);
    }
    return speaker;
  };
  speaker_ = co_await run_with_models(services_, socket_.executor(), find_speaker);
}

// An error that ends the connection.
Task<> ElevenSession::refuse(HttpError told) {
  leaving_ = true;
  co_await tell(told, nullptr);
  co_await writer_.close(kPolicy, told.message);
}

HttpError ElevenSession::told_of(const Error& error) const {
  return told_error(services_, socket_.request(), error);
}

Task<> ElevenSession::tell(const HttpError& told, const std::string* context_id) {
  return writer_.text(eleven_error(told, context_id, socket_.request().id));
}

Task<> ElevenSession::converse() {
  std::optional<HttpError> refused;
  try {
    co_await begin();
  } catch (const Error& error) {
    refused = told_of(error);
  }
  if (refused) co_await refuse(std::move(*refused));
  tasks_.spawn(watch());
  while (true) {
    std::optional<WebSocket::Message> message = co_await socket_.read();
    if (!message) co_return;
    if (leaving_) continue;
    last_used_ = Clock::now();
    std::optional<HttpError> wrong;
    try {
      if (!message->text)
        fail(ErrorCode::invalid_argument, "a binary message: expected JSON in a text message");
      co_await take(message->data);
    } catch (const Error& error) {
      if (writer_.broken()) throw;
      wrong = told_of(error);
    }
    if (!wrong) continue;
    if (multi_)
      co_await tell(*wrong, nullptr);
    else
      co_await refuse(std::move(*wrong));
  }
}

Task<> ElevenSession::take(const std::string& json) {
  std::string id;  // also of a message that is wrong, so that its context learns of it
  const auto read = [&] {
    const Value value = read_json(json);
    const Value* named = value.find("context_id");
    if (const std::string* text = named ? named->as<std::string>() : nullptr) id = *text;
    return messages_.read(value);
  };
  std::optional<HttpError> wrong;
  try {
    ElevenMessage message;
    if (json.size() <= kQuickBodyBytes)
      message = read();
    else
      message = co_await services_.workers.run(socket_.executor(), read);
    co_await obey(std::move(message));
  } catch (const Error& error) {
    if (writer_.broken() || !multi_) throw;
    wrong = told_of(error);
  }
  if (wrong) co_await tell(*wrong, &id);
}

ElevenSession::Context* ElevenSession::find(const std::string& id) {
  for (Context& context : contexts_)
    if (context.id == id && !context.closed) return &context;
  return nullptr;
}

// What was flushed is spoken to its end; without a flush nothing more is heard.
void ElevenSession::close(Context& context) {
  context.closed = true;
  if (context.unflushed)
    context.utterance->cancel();
  else
    context.utterance->end();
}

Task<> ElevenSession::obey(ElevenMessage message) {
  if (message.close_socket) {
    leaving_ = true;
    for (Context& context : contexts_)
      if (!context.closed) close(context);
    if (contexts_.empty()) co_await writer_.close(kClosed, "closed as asked");
    co_return;
  }
  Context* context = find(message.context_id);
  if (message.close_context) {
    if (context) close(*context);
    co_return;
  }
  const bool nothing = !message.words && !message.flush;
  if (!context && (nothing || (multi_ && message.words.value_or("").empty()))) co_return;
  if (!context) context = co_await open(message);
  context->last_used = Clock::now();
  const std::string words = message.words.value_or("");
  if (words.find_first_not_of(' ') != std::string::npos || (context->unflushed && !words.empty())) {
    context->utterance->add(words);
    context->unflushed = true;
  }
  if (message.flush) {
    context->utterance->flush();
    context->unflushed = false;
  }
  if (multi_ || !message.words || !words.empty()) co_return;
  context->utterance->end();
  context->closed = true;
  leaving_ = true;
}

Task<ElevenSession::Context*> ElevenSession::open(const ElevenMessage& message) {
  if (services_.draining) fail(ErrorCode::unavailable, "the server is shutting down");
  if (contexts_.size() >= kMostContexts)
    fail(ErrorCode::resource_exhausted, "context_id: at most ", kMostContexts, " contexts speak at once");
  const auto prepare = [&] {
    return live_settings(services_, socket_.request(), start_of(asked_, speaker_, message));
  };
  LiveSettings settings = co_await run_with_models(services_, socket_.executor(), prepare);
  Context& context = add(message.context_id, std::move(settings));
  tasks_.spawn(speak(std::prev(contexts_.end())));
  co_return &context;
}

ElevenSession::Context& ElevenSession::add(const std::string& id, LiveSettings settings) {
  const Request& request = socket_.request();
  const bool times = settings.engine->traits().phonemes;
  Context context;
  context.id = id;
  context.listener = std::make_unique<ElevenListener>(writer_, multi_ ? &id : nullptr, request.id, times);
  context.utterance =
      std::make_unique<LiveUtterance>(services_, request, *context.listener, std::move(settings));
  contexts_.push_back(std::move(context));
  return contexts_.back();
}

Task<> ElevenSession::speak(Contexts::iterator context) {
  const bool whole = co_await goes_well(context->utterance->speak());
  const bool failed = context->listener->has_failed();
  contexts_.erase(context);
  last_used_ = Clock::now();
  if (!whole || tasks_.over() || (multi_ && !leaving_) || !contexts_.empty()) co_return;
  leaving_ = true;
  if (failed && !multi_)  // as the service closes after any error
    co_await writer_.close(kPolicy, "the utterance has failed");
  else
    co_await writer_.close(kClosed, "everything has been spoken");
}

// A context that has waited for text long enough is spoken to its end.
void ElevenSession::rest(Context& context) const {
  if (!context.utterance->waits_for_text()) {
    context.last_used = Clock::now();
    return;
  }
  if (context.closed || Clock::now() - context.last_used < std::chrono::seconds(asked_.patience_s)) return;
  context.closed = true;
  context.utterance->end();
}

Task<> ElevenSession::watch() {
  while (true) {
    const bool goes_on = co_await tasks_.tick();
    if (!goes_on || writer_.broken()) co_return;
    for (Context& context : contexts_) {
      rest(context);
      if (services_.grace_over) context.utterance->cancel();
    }
    if (!contexts_.empty() || leaving_) continue;
    if (services_.draining) {
      leaving_ = true;
      co_await writer_.close(kLeaves, "the server is shutting down");
    } else if (Clock::now() - last_used_ >= std::chrono::seconds(asked_.patience_s)) {
      Error why(ErrorCode::deadline_exceeded,
                concat("inactivity_timeout: nothing was said for ", asked_.patience_s, " seconds"));
      HttpError told = told_of(why);
      co_await refuse(std::move(told));
    }
  }
}

}  // namespace shoal::server
