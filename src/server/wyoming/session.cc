#include "server/wyoming/session.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "server/access/request_id.h"
#include "server/routes/wanted_models.h"
#include "server/wyoming/voices.h"

namespace shoal::server {
namespace {

// Events that ask for sound, or belong to it. Home Assistant waits for the end of the sound or of the
// connection, and reads no error: such an event's error ends the connection.
bool asks_for_sound(std::string_view type) { return type.starts_with("synthesize"); }

}  // namespace

WyomingSession::WyomingSession(const WyomingHost& host, WyomingChannel& channel)
    : host_(host),
      services_(host.services),
      channel_(channel),
      writer_(channel),
      tasks_(channel.executor()) {}

Task<> WyomingSession::run() {
  return tasks_.run(converse(), [this] {
    closed_ = true;
    if (speech_) speech_->utterance->cancel();
  });
}

Task<> WyomingSession::converse() {
  tasks_.spawn(watch());
  while (true) {
    std::optional<WyomingEvent> event;
    std::optional<Error> wrong;
    bool is_over = false;
    try {
      event = co_await channel_.read();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      wrong = error;
      is_over = true;
    }
    if (!event && !wrong) co_return;
    if (event) {
      last_used_ = Clock::now();
      is_over = asks_for_sound(event->type);
      taking_ = true;
      try {
        co_await take(std::move(*event));
      } catch (const Error& error) {
        if (writer_.broken()) throw;
        wrong = error;
      }
      taking_ = false;
    }
    if (wrong && is_over) co_return co_await leave(&*wrong);
    if (wrong) co_await report(*wrong);
  }
}

LiveUtterance& WyomingSession::stream() const {
  if (!speech_ || !speech_->streams || speech_->utterance->ended())
    fail(ErrorCode::invalid_argument, "type: no stream is open; send synthesize-start first");
  return *speech_->utterance;
}

Task<> WyomingSession::take(WyomingEvent event) {
  if (event.wrong) throw *event.wrong;
  if (event.type == "describe") {
    const auto describe = [this] { return wyoming_event("info", wyoming_info(services_)); };
    std::string info = co_await run_with_models(services_, channel_.executor(), describe);
    co_await writer_.text(std::move(info));
  } else if (event.type == "ping") {
    std::string pong = wyoming_event("pong", {Value::Object{{"text", text_or_null(read_ping(event.data))}}});
    co_await writer_.text(std::move(pong));
  } else if (event.type == "synthesize") {
    // Within a stream it repeats the whole text, for servers that do not know streams.
    if (is_open() && speech_->streams && !speech_->utterance->ended()) co_return;
    WyomingRequest wanted = read_synthesize(event.data);
    co_await start(std::move(wanted), false);
  } else if (event.type == "synthesize-start") {
    if (is_open() && speech_->streams && !speech_->utterance->ended())
      fail(ErrorCode::invalid_argument, "type: a stream is open; send synthesize-stop first");
    WyomingRequest wanted = read_synthesize_start(event.data);
    co_await start(std::move(wanted), true);
  } else if (event.type == "synthesize-chunk") {
    stream().add(read_synthesize_chunk(event.data));
  } else if (event.type == "synthesize-stop") {
    stream().end();
  } else {
    throw BodyError(ErrorCode::unsupported, "type",
                    concat("this server speaks: it takes describe, ping, synthesize, synthesize-start, "
                           "synthesize-chunk and synthesize-stop, got \"",
                           printable(event.type), "\""));
  }
}

Request WyomingSession::new_request() const {
  Request request;
  request.method = "WYOMING";
  request.path = "/synthesize";
  request.route = "wyoming";
  request.client = host_.client;
  request.peer = channel_.peer();
  request.id = request_id_of(request);
  return request;
}

void WyomingSession::record(const Speech& speech, int status, bool whole) const {
  host_.record(speech.request, {.status = status,
                                .whole = whole,
                                .bytes_sent = speech.speaker ? speech.speaker->bytes_sent() : 0,
                                .duration = Clock::now() - speech.begun});
}

Task<> WyomingSession::prepare(Speech& speech, const WyomingRequest& wanted) {
  speech.place = host_.enter(speech.request);
  const auto settle = [&] {
    return live_settings(services_, speech.request, wyoming_start(services_, wanted));
  };
  LiveSettings settings = co_await run_with_models(services_, channel_.executor(), settle);
  speech.speaker = std::make_unique<WyomingSpeaker>(writer_, settings.sample_rate_hz, speech.streams);
  speech.utterance =
      std::make_unique<LiveUtterance>(services_, speech.request, *speech.speaker, std::move(settings));
  if (speech.streams) co_return;
  speech.utterance->add(wanted.text);
  speech.utterance->end();
}

// The one before is spoken to its end first: its sound would mix with this one's.
Task<> WyomingSession::start(WyomingRequest wanted, bool streams) {
  while (speaking_) co_await tasks_.wait_for_an_end();
  if (closed_) co_return;
  if (services_.draining) fail(ErrorCode::unavailable, "the server is shutting down");
  auto speech = std::make_unique<Speech>();
  speech->request = new_request();
  speech->streams = streams;
  std::optional<Error> refused;
  try {
    co_await prepare(*speech, wanted);
  } catch (const Error& error) {
    refused = error;
  }
  last_used_ = Clock::now();
  if (refused) record(*speech, http_error(*refused).status, true);
  if (refused) throw Error(*refused);
  speech_ = std::move(speech);
  speaking_ = true;
  tasks_.spawn(speak());
}

Task<> WyomingSession::speak() {
  const bool well = co_await goes_well(speech_->utterance->speak());
  Speech& speech = *speech_;
  const int failed_with = speech.speaker->failed_with();
  const bool whole = speech.speaker->whole();
  record(speech, failed_with > 0 ? failed_with : whole ? 200 : 0, whole || failed_with > 0);
  speech.place.reset();
  speaking_ = false;
  last_used_ = Clock::now();
  if (failed_with > 0 && !closed_ && well) co_await leave(nullptr);
  tasks_.hurry();  // a server that goes down says goodbye at once
}

Task<> WyomingSession::report(const Error& error) {
  return writer_.text(wyoming_error(told_error(services_, new_request(), error)));
}

// Ends the conversation, with an error if there is a reason.
Task<> WyomingSession::leave(const Error* why) {
  if (std::exchange(closed_, true)) co_return;
  if (why) co_await report(*why);
  co_await writer_.close(0, "");
}

Task<> WyomingSession::watch() {
  const auto patience = std::chrono::seconds(services_.config.idle_timeout_s);
  while (true) {
    const bool goes_on = co_await tasks_.tick();
    if (!goes_on || closed_ || writer_.broken()) co_return;
    const bool waits = is_open() && speech_->utterance->waits_for_text();
    if (taking_ || speaking_ != waits) last_used_ = Clock::now();
    if (is_open() && services_.grace_over) {  // its text will not be completed
      Error why(ErrorCode::unavailable, "the server is shutting down");
      speech_->utterance->cancel();
      co_return co_await leave(&why);
    }
    if (services_.draining && !speaking_ && !taking_) co_return co_await leave(nullptr);
    if (Clock::now() - last_used_ < patience) continue;
    if (!waits) co_return co_await leave(nullptr);
    Error why(ErrorCode::deadline_exceeded,
              concat("the stream had no text for ", patience.count(), " seconds"));
    speech_->utterance->cancel();
    co_return co_await leave(&why);
  }
}

}  // namespace shoal::server
