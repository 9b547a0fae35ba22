#include "server/routes/speech_answer.h"

#include <cstdio>

#include "base/base64.h"
#include "base/error.h"
#include "server/observe/log_sink.h"
#include "server/routes/speech_parts.h"
#include "server/routes/speech_warnings.h"
#include "server/routes/spoken_answer.h"

namespace shoal::server {
namespace {

// The limit for submitting on a connection's thread: splitting and tokenising this much text takes under a
// millisecond.
constexpr size_t kQuickTextBytes = 2048;

std::string type_of(const AnswerOptions& options) {
  return options.content_type.empty() ? std::string(audio::mime_type(options.format)) : options.content_type;
}

Task<> send_stream(Exchange& exchange, SpokenAnswer& answer, Speaking& speaking,
                   const AnswerOptions& options) {
  while (true) {
    std::optional<std::string> bytes = co_await answer.next_bytes();
    if (!bytes) break;
    if (bytes->empty()) continue;
    if (exchange.begun()) {
      co_await exchange.write(*bytes);
      continue;
    }
    Response head = answer.stream_head(type_of(options), options.headers);
    head.body = std::move(*bytes);
    co_await exchange.begin(std::move(head));
    speaking.heard();
  }
  co_await exchange.end();
}

Task<> send_whole(Exchange& exchange, SpokenAnswer& answer, Speaking& speaking,
                  const AnswerOptions& options) {
  std::string body = co_await answer.whole_file();
  Response response = answer.head(type_of(options), options.headers);
  const SpeechSummary summary = answer.summary();
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.3f", summary.audio_s());
  response.headers.add("x-shoal-audio-seconds", seconds);
  if (summary.cut_at_frames > 0)
    response.headers.add("x-shoal-cut-at-frames", std::to_string(summary.cut_at_frames));
  response.body = std::move(body);
  co_await exchange.respond(std::move(response));
  speaking.heard();
}

std::string event(const Value& value) { return "data: " + write_json(value) + "\n\n"; }

std::string delta_event(std::string_view bytes) {
  return event({Value::Object{{"type", {std::string("speech.audio.delta")}}, {"audio", {to_base64(bytes)}}}});
}

std::string done_event(const SpeechSummary& summary) {
  Value::Object usage{{"input_tokens", {summary.prompt_columns}},
                      {"output_tokens", {summary.frames}},
                      {"total_tokens", {summary.prompt_columns + summary.frames}}};
  Value::Object done{{"type", {std::string("speech.audio.done")}}, {"usage", {std::move(usage)}}};
  if (!summary.warnings.empty()) done.emplace_back("warnings", warnings_value(summary.warnings));
  return event({std::move(done)});
}

std::string error_event(const Error& error, const std::string& request_id) {
  return event({Value::Object{{"type", {std::string("error")}},
                              {"error", openai_error(http_error(error), request_id)}}});
}

Task<> send_events(Exchange& exchange, SpokenAnswer& answer, Speaking& speaking,
                   const AnswerOptions& options) {
  while (true) {
    std::optional<std::string> bytes = co_await answer.next_bytes();
    if (!bytes) break;
    if (bytes->empty()) continue;
    const std::string told = delta_event(*bytes);
    if (exchange.begun()) {
      co_await exchange.write(told);
      continue;
    }
    Response head = answer.stream_head("text/event-stream", options.headers);
    head.body = told;
    co_await exchange.begin(std::move(head));
    speaking.heard();
  }
  co_await exchange.write(done_event(answer.summary()));
  co_await exchange.end();
}

}  // namespace

Task<Speech> submit_speech(Services& services, Engine& engine, Exchange& exchange, SpeechRequest request) {
  return submit_speech(services, engine, exchange.request(), exchange.executor(), std::move(request));
}

Task<Speech> submit_speech(Services& services, Engine& engine, const Request& from, Executor executor,
                           SpeechRequest request) {
  const auto submit = [&] {
    check_and_complete(services, engine, from, request);
    const int64_t characters = charged_characters(request);
    services.usage.add_characters(from.client, characters);
    try {
      return engine.submit(std::move(request));
    } catch (const Error& error) {
      services.usage.give_back(from.client, characters);
      tell_unknown_voice(services, engine, error);
      throw;
    }
  };
  const bool quick = request.text.size() + request.phonemes.size() <= kQuickTextBytes &&
                     request.voice.empty() && request.references.empty() && request.voices.empty();
  try {
    if (quick) co_return submit();
    Speech speech = co_await services.workers.run(executor, submit);
    co_return speech;
  } catch (const Error& error) {
    hide_paths(engine, from, error);
    throw;
  }
}

Task<std::unique_ptr<SpeechSource>> submit_source(Services& services, Engine& engine, Exchange& exchange,
                                                  SpeechRequest request, const AnswerOptions& options) {
  if (options.parts.empty()) {
    Speech speech = co_await submit_speech(services, engine, exchange, std::move(request));
    co_return std::make_unique<SpeechReader>(std::move(speech), exchange.executor());
  }
  auto parts = std::make_unique<SpeechParts>(services, engine, exchange.request(), exchange.executor(),
                                             std::move(request), options.parts);
  try {
    const CancelWhenGone cancel(exchange, *parts);
    co_await parts->begin();
  } catch (const Error& error) {
    hide_paths(engine, exchange.request(), error);
    throw;
  }
  co_return parts;
}

Task<> answer_with_speech(Services& services, Engine& engine, Exchange& exchange, SpeechRequest request,
                          AnswerOptions options) {
  Speaking speaking(services.metrics);
  request.delivery = options.streaming ? Delivery::streaming : Delivery::whole;
  auto source = co_await submit_source(services, engine, exchange, std::move(request), options);
  SpokenAnswer answer(services, engine, exchange, std::move(source));
  answer.set_encoder(options, !options.streaming);
  if (options.streaming)
    co_await send_stream(exchange, answer, speaking, options);
  else
    co_await send_whole(exchange, answer, speaking, options);
}

Task<> answer_with_events(Services& services, Engine& engine, Exchange& exchange, SpeechRequest request,
                          AnswerOptions options) {
  Speaking speaking(services.metrics);
  auto source = co_await submit_source(services, engine, exchange, std::move(request), options);
  SpokenAnswer answer(services, engine, exchange, std::move(source));
  answer.set_encoder(options, false);
  std::string last_words;
  try {
    co_await send_events(exchange, answer, speaking, options);
  } catch (const Error& error) {
    if (!exchange.begun() || error.code() == ErrorCode::cancelled) throw;
    log_cut_off(exchange.request(), error);
    last_words = error_event(error, exchange.request().id);
  }
  if (last_words.empty()) co_return;
  co_await exchange.write(last_words);
  co_await exchange.end();
}

}  // namespace shoal::server
