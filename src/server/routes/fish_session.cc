#include "server/routes/fish_session.h"

#include <boost/asio/co_spawn.hpp>
#include <exception>

#include "base/error.h"
#include "server/observe/log_sink.h"
#include "server/routes/request_body.h"
#include "server/routes/wanted_models.h"

namespace shoal::server {
namespace {

constexpr std::chrono::milliseconds kFishTick{500};
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
    : services_(services),
      socket_(socket),
      reader_(reader),
      writer_(socket),
      tick_(socket.executor()),
      task_ended_(socket.executor()) {}

void FishSession::spawn(Task<> task) {
  ++tasks_;
  boost::asio::co_spawn(socket_.executor(), std::move(task), [this](const std::exception_ptr&) {
    --tasks_;  // a broken connection also ends run(), which reports it; they throw nothing else
    task_ended_.notify();
  });
}

Task<> FishSession::run() {
  spawn(watch());
  std::exception_ptr thrown;
  try {
    co_await converse();
  } catch (...) {
    thrown = std::current_exception();
  }
  over_ = true;
  if (utterance_) utterance_->cancel();
  tick_.notify();
  while (tasks_ > 0) co_await task_ended_.wait();
  if (thrown) std::rethrow_exception(thrown);
}

Task<> FishSession::converse() {
  while (true) {
    std::optional<WebSocket::Message> message = co_await socket_.read();
    if (!message) co_return;
    if (leaving_) continue;
    last_used_ = Clock::now();
    std::optional<HttpError> wrong;
    std::string why;
    try {
      co_await take(std::move(*message));
    } catch (const Error& error) {
      if (writer_.broken()) throw;
      wrong = http_error(error);
      why = error.message();
    }
    if (wrong) co_await refuse(std::move(*wrong), std::move(why));
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
  spawn(speak());
}

Task<> FishSession::speak() {
  std::exception_ptr thrown;
  try {
    co_await utterance_->speak();
  } catch (...) {
    thrown = std::current_exception();
  }
  leaving_ = true;
  if (thrown) std::rethrow_exception(thrown);
  if (over_ || writer_.broken()) co_return;
  const std::optional<HttpError>& error = listener_->error();
  const bool goes_down = error && services_.draining;
  const uint16_t code = goes_down ? kShutsDown : error ? close_code_of(*error) : kFinished;
  const std::string reason = error ? error->message : "everything has been spoken";
  co_await writer_.close(code, reason);
}

Task<> FishSession::refuse(HttpError told, std::string why) {
  leaving_ = true;
  services_.metrics.count_error(name_of(told.code));
  if (told.status == 500) log_failure(socket_.request(), why);
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
  while (!over_) {
    co_await tick_.wait(kFishTick);
    if (over_ || writer_.broken()) co_return;
    if (utterance_ && services_.grace_over) utterance_->cancel();
    const bool waits = !utterance_ || (!utterance_->over() && utterance_->waits_for_text());
    if (!waits) last_used_ = Clock::now();
    if (leaving_) continue;
    if (services_.draining && !utterance_) {
      HttpError told = http_error(Error(ErrorCode::unavailable, "the server is shutting down"));
      std::string nothing;
      co_await refuse(std::move(told), std::move(nothing));
    } else if (Clock::now() - last_used_ >= patience) {
      const std::string why = concat("nothing was said for ", patience.count(), " seconds");
      HttpError told = http_error(Error(ErrorCode::invalid_argument, why));
      co_await refuse(std::move(told), why);
    }
  }
}

}  // namespace shoal::server
