// Sound with the times of its words.
#include <utility>

#include "base/error.h"
#include "server/routes/speech_warnings.h"
#include "server/routes/spoken_answer.h"

namespace shoal::server {
namespace {

constexpr const char* kLines = "application/x-ndjson";

Value times_of(const std::vector<SpokenWord>& words) {
  Value::Array times;
  for (const SpokenWord& word : words)
    times.push_back(
        {Value::Object{{"word", {word.word}}, {"start_time", {word.start_s}}, {"end_time", {word.end_s}}}});
  return {std::move(times)};
}

std::string caption_json(std::string_view bytes, audio::Format format, Value times,
                         const std::vector<std::string>& warnings) {
  Value::Object members{{"audio", {to_base64(bytes)}},
                        {"audio_format", {std::string(audio::mime_type(format))}},
                        {"timestamps", std::move(times)}};
  if (!warnings.empty()) members.emplace_back("warnings", warnings_value(warnings));
  return write_json({std::move(members)});
}

Task<> send_lines(Exchange& exchange, SpokenAnswer& answer, Speaking& speaking, const AnswerOptions& options,
                  bool timestamps) {
  while (true) {
    const std::optional<std::string> bytes = co_await answer.next_bytes();
    const std::vector<SpokenWord> words = answer.new_words();
    const std::vector<std::string> warnings = bytes ? std::vector<std::string>() : answer.summary().warnings;
    const bool empty = (!bytes || bytes->empty()) && words.empty() && warnings.empty();
    if (!empty) {
      Value times = timestamps ? times_of(words) : Value();
      std::string line = caption_json(bytes ? *bytes : "", options.format, std::move(times), warnings);
      line += '\n';
      if (exchange.begun()) {
        co_await exchange.write(line);
      } else {
        Response head = answer.stream_head(kLines, options.headers);
        head.body = std::move(line);
        co_await exchange.begin(std::move(head));
        speaking.heard();
      }
    }
    if (!bytes) break;
  }
  co_await exchange.end();
}

Task<> send_object(Exchange& exchange, SpokenAnswer& answer, Speaking& speaking, const AnswerOptions& options,
                   bool timestamps) {
  std::string file = co_await answer.whole_file();
  Value times = timestamps ? times_of(answer.new_words()) : Value();
  Response response = answer.head("application/json", options.headers);
  response.body = caption_json(file, options.format, std::move(times), answer.summary().warnings);
  co_await exchange.respond(std::move(response));
  speaking.heard();
}

}  // namespace

Task<> answer_with_captions(Services& services, Engine& engine, Exchange& exchange, SpeechRequest request,
                            AnswerOptions options, bool timestamps) {
  Speaking speaking(services.metrics);
  request.delivery = options.streaming ? Delivery::streaming : Delivery::whole;
  Speech speech = co_await submit_speech(services, engine, exchange, std::move(request));
  SpokenAnswer answer(services, engine, exchange, std::move(speech));
  answer.set_encoder(options, !options.streaming);
  if (options.streaming)
    co_await send_lines(exchange, answer, speaking, options, timestamps);
  else
    co_await send_object(exchange, answer, speaking, options, timestamps);
}

}  // namespace shoal::server
