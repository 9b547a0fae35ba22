#include "server/routes/fish_session.h"

#include <optional>

#include "base/error.h"
#include "server/routes/request_body.h"
#include "server/routes/wanted_models.h"

namespace shoal::server {
namespace {

constexpr uint16_t kFinished = 1000, kShutsDown = 1001;
// The package fish-audio-sdk, known by its header, loses a message that comes in one read with another one.
constexpr std::chrono::milliseconds kPauseForSdk{25};

std::chrono::milliseconds pause_for(const Request& request) {
  return request.headers.find("developer-id") ? kPauseForSdk : std::chrono::milliseconds(0);
}

LiveSettings settings_of(Services& services, const Request& from, const FishRequest& body) {
  Engine& engine = *model_of(services.models, from, body).engine;
  const auto held = engine.hold();
  const AnswerOptions options = answer_options(body);
  SpeechRequest speech = speech_request(services, engine, body);
  return live_settings(services, from, engine, std::move(speech),
                       {.id = {},
                        .format = options.format,
                        .sample_rate_hz = options.sample_rate_hz,
                        .bitrate_bps = options.encoder.bitrate_bps,
                        .longest_segment = static_cast<size_t>(body.chunk_length)});
}

}  // namespace

FishSession::FishSession(Services& services, WebSocket& socket, const FishReader& reader)
    : services_(services), socket_(socket), reader_(reader), writer_(socket), tasks_(socket.executor()) {}

Task<> FishSession::run() {
  return tasks_.run(converse(), [this] {
    if (utterance_) utterance_->cancel();
  });
}

Task<> FishSession::converse() {
  tasks_.spawn(watch());
  while (true) {
    std::optional<WebSocket::Message> message = co_await socket_.read();
    if (!message) co_return;
    if (leaving_) continue;
    last_used_ = Clock::now();
    std::optional<HttpError> wrong;
    try {
      co_await take(std::move(*message));
    } catch (const Error& error) {
      if (writer_.broken()) throw;
      wrong = told_error(services_, socket_.request(), error);
    }
    if (wrong) co_await refuse(std::move(*wrong));
  }
}

Task<> FishSession::take(WebSocket::Message message) {
  if (message.text)
    fail(ErrorCode::invalid_argument, "a text message: expected MessagePack in a binary message");
  const auto read = [this, &message] { return reader_.read(message.data); };
  FishMessage order;
  if (message.data.size() <= kQuickBodyBytes)
    order = read();
  else
    order = co_await services_.workers.run(socket_.executor(), read);
  co_await obey(std::move(order));
}

LiveUtterance& FishSession::current() const {
  if (!utterance_) throw BodyError(ErrorCode::invalid_argument, "event", "expected start as the first one");
  return *utterance_;
}

Task<> FishSession::obey(FishMessage message) {
  using Verb = FishMessage::Verb;
  switch (message.verb) {
    case Verb::start:
      co_await start(std::move(message.request));
      break;
    case Verb::text:
      current().add(message.text);
      break;
    case Verb::flush:
      current().flush();
      break;
    case Verb::stop:
      current().end();
      leaving_ = true;
      break;
  }
}

Task<> FishSession::start(FishRequest request) {
  if (utterance_)
    throw BodyError(ErrorCode::invalid_argument, "event",
                    "expected one start, found two; each connection speaks one utterance");
  if (services_.draining) fail(ErrorCode::unavailable, "the server is shutting down");
  const auto prepare = [&] { return settings_of(services_, socket_.request(), request); };
  const bool in_turn = !request.references.empty() || !request.clips.empty();
  LiveSettings settings = co_await run_with_models(services_, socket_.executor(), prepare, in_turn);
  last_used_ = Clock::now();
  const Request& from = socket_.request();
  listener_ = std::make_unique<FishListener>(writer_, from.id, pause_for(from));
  utterance_ = std::make_unique<LiveUtterance>(services_, from, *listener_, std::move(settings));
  utterance_->add(request.text);
  tasks_.spawn(speak());
}

Task<> FishSession::speak() {
  const bool whole = co_await goes_well(utterance_->speak());
  leaving_ = true;
  if (!whole || tasks_.over() || writer_.broken()) co_return;
  const std::optional<HttpError>& error = listener_->error();
  const bool goes_down = error && services_.draining;
  const uint16_t code = goes_down ? kShutsDown : error ? close_code_of(*error) : kFinished;
  const std::string reason = error ? error->message : "everything has been spoken";
  co_await writer_.close(code, reason);
}

Task<> FishSession::refuse(HttpError told) {
  leaving_ = true;
  if (utterance_) {  // its end tells it
    listener_->fail_with(told);
    utterance_->cancel();
    co_return;
  }
  std::string finish = fish_finish(told, socket_.request().id);
  co_await writer_.sound(std::move(finish));
  uint16_t code = close_code_of(told);
  if (services_.draining) code = kShutsDown;
  co_await writer_.close(code, told.message);
}

Task<> FishSession::watch() {
  const auto patience = std::chrono::seconds(services_.config.idle_timeout_s);
  while (true) {
    const bool goes_on = co_await tasks_.tick();
    if (!goes_on || writer_.broken()) co_return;
    if (utterance_ && services_.grace_over) utterance_->cancel();
    const bool waits = !utterance_ || (!utterance_->over() && utterance_->waits_for_text());
    if (!waits) last_used_ = Clock::now();
    if (leaving_) continue;
    std::optional<Error> why;
    if (services_.draining && !utterance_)
      why = Error(ErrorCode::unavailable, "the server is shutting down");
    else if (Clock::now() - last_used_ >= patience)
      why = Error(ErrorCode::invalid_argument, concat("nothing was said for ", patience.count(), " seconds"));
    if (!why) continue;
    HttpError told = told_error(services_, socket_.request(), *why);
    co_await refuse(std::move(told));
  }
}

}  // namespace shoal::server
