#include "server/routes/live_session.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "server/routes/request_body.h"
#include "server/routes/wanted_models.h"

namespace shoal::server {
namespace {

constexpr uint16_t kNormal = 1000, kGoingAway = 1001;

// The messages of docs/LIVE.md.
class LiveMessages final : public LiveListener {
 public:
  LiveMessages(LiveWriter& writer, std::string id, std::string request_id)
      : LiveListener(writer), id_(std::move(id)), request_id_(std::move(request_id)) {}

  Task<> segment(int64_t index, const std::string& text, double at_s) override {
    return writer().text(live_segment(id_, index, text, at_s));
  }
  Task<> sound(std::string bytes, std::vector<SpokenWord>) override {
    if (!bytes.empty()) co_await writer().sound(std::move(bytes));
  }
  Task<> failed(const HttpError& error) override {
    return writer().text(live_error(id_, error, request_id_));
  }
  Task<> done(const LiveDone& done) override { return writer().text(live_done(done)); }

 private:
  const std::string id_, request_id_;
};

}  // namespace

LiveSession::LiveSession(Services& services, WebSocket& socket, const LiveReader& reader, LiveFrames frames)
    : services_(services),
      socket_(socket),
      reader_(reader),
      frames_(frames),
      writer_(socket),
      tasks_(socket.executor()) {}

Task<> LiveSession::run() {
  return tasks_.run(converse(), [this] {
    if (utterance_) utterance_->cancel();
  });
}

Task<> LiveSession::converse() {
  tasks_.spawn(watch());
  while (true) {
    std::optional<WebSocket::Message> message = co_await socket_.read();
    if (!message) co_return;
    last_used_ = Clock::now();
    std::optional<HttpError> wrong;
    try {
      co_await take(std::move(*message));
    } catch (const Error& error) {
      if (writer_.broken()) throw;
      wrong = told_error(services_, socket_.request(), error);
    }
    if (wrong) co_await report(*wrong);
  }
}

Task<> LiveSession::take(WebSocket::Message message) {
  if (!message.text && frames_ == LiveFrames::text)
    fail(ErrorCode::invalid_argument, "a binary message: expected JSON in a text message");
  const auto read = [this, &message] { return reader_.read(message.data); };
  LiveMessage order;
  if (message.data.size() <= kQuickBodyBytes)
    order = read();
  else
    order = co_await services_.workers.run(socket_.executor(), read);
  co_await obey(std::move(order));
}

LiveUtterance& LiveSession::current() const {
  if (!utterance_)
    fail(ErrorCode::invalid_argument, "type: no utterance has been started; send `start` first");
  return *utterance_;
}

Task<> LiveSession::obey(LiveMessage message) {
  using Verb = LiveMessage::Verb;
  // Messages that were on their way when an utterance failed or was cancelled are ignored.
  const bool late = utterance_ && utterance_->over() && !utterance_->ended();
  switch (message.verb) {
    case Verb::start:
      co_await start(std::move(message.start));
      break;
    case Verb::text:
      if (!late) current().add(message.text);
      break;
    case Verb::flush:
      if (!late) current().flush();
      break;
    case Verb::end:
      current().end();
      break;
    case Verb::cancel:
      if (utterance_ && !utterance_->over()) utterance_->cancel();
      break;
    case Verb::ping:
      co_await writer_.text(live_pong());
      break;
  }
}

Task<> LiveSession::start(LiveStart start) {
  if (utterance_ && !utterance_->over())
    fail(ErrorCode::invalid_argument,
         "type: an utterance is being spoken; wait for its `done`, or `cancel` it");
  if (services_.draining) fail(ErrorCode::unavailable, "the server is shutting down");
  while (speaking_) co_await tasks_.wait_for_an_end();  // its `done` comes before this one's `started`
  const auto prepare = [&] { return live_settings(services_, socket_.request(), start); };
  const bool in_turn = !start.references.empty();
  LiveSettings settings = co_await run_with_models(services_, socket_.executor(), prepare, in_turn);
  last_used_ = Clock::now();
  const LiveStarted started{.id = settings.id,
                            .format = settings.format,
                            .content_type = std::string(audio::mime_type(settings.audio_format)),
                            .sample_rate_hz = settings.sample_rate_hz,
                            .seed = *settings.request.seed};
  utterance_.reset();
  listener_ = std::make_unique<LiveMessages>(writer_, settings.id, socket_.request().id);
  utterance_ = std::make_unique<LiveUtterance>(services_, socket_.request(), *listener_, std::move(settings));
  co_await writer_.text(live_started(started));
  speaking_ = true;
  tasks_.spawn(speak());
}

Task<> LiveSession::speak() {
  co_await goes_well(utterance_->speak());
  speaking_ = false;
  last_used_ = Clock::now();
  tasks_.hurry();  // a server that goes down says goodbye at once
}

Task<> LiveSession::report(const HttpError& told) {
  return writer_.text(live_error("", told, socket_.request().id));
}

bool LiveSession::is_busy() const {
  return utterance_ && !utterance_->over() && !utterance_->waits_for_text();
}

Task<> LiveSession::watch() {
  const auto patience = std::chrono::seconds(services_.config.idle_timeout_s);
  while (true) {
    const bool goes_on = co_await tasks_.tick();
    if (!goes_on || writer_.broken()) co_return;  // read() ends by itself
    if (is_busy()) {
      last_used_ = Clock::now();
      continue;
    }
    const bool open = utterance_ && !utterance_->over();
    if (open && services_.grace_over) utterance_->cancel();  // its text will not be completed
    const bool idle = Clock::now() - last_used_ >= patience;
    if (services_.draining && !open) {
      Error why(ErrorCode::unavailable, "the server is shutting down");
      co_return co_await say_goodbye(kGoingAway, std::move(why));
    }
    if (idle) {
      Error why(ErrorCode::deadline_exceeded, concat("nothing was said for ", patience.count(),
                                                     " seconds; `ping` keeps a connection open"));
      co_return co_await say_goodbye(kNormal, std::move(why));
    }
  }
}

Task<> LiveSession::say_goodbye(uint16_t code, Error why) {
  const HttpError told = told_error(services_, socket_.request(), why);
  co_await report(told);
  co_await writer_.close(code, why.message());
}

}  // namespace shoal::server
