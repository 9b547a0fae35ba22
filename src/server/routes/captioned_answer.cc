// Sound with the times of its words.
#include <utility>

#include "base/base64.h"
#include "base/error.h"
#include "server/routes/speech_warnings.h"
#include "server/routes/spoken_answer.h"

namespace shoal::server {
namespace {

constexpr const char* kCaptionLines = "application/x-ndjson";

Value times_of(const std::vector<SpokenWord>& words) {
  Value::Array times;
  for (const SpokenWord& word : words)
    times.push_back(
        {Value::Object{{"word", {word.word}}, {"start_time", {word.start_s}}, {"end_time", {word.end_s}}}});
  return {std::move(times)};
}

// Its members besides the sound.
std::string remarks_json(audio::Format format, Value times, const std::vector<std::string>& warnings) {
  Value::Object members{{"audio_format", {std::string(audio::mime_type(format))}},
                        {"timestamps", std::move(times)}};
  if (!warnings.empty()) members.emplace_back("warnings", warnings_value(warnings));
  return write_json({std::move(members)});
}

constexpr std::string_view kBeforeSound = R"({"audio":")", kAfterSound = "\",";

size_t caption_size(size_t bytes, const std::string& remarks) {
  return kBeforeSound.size() + base64_size(bytes) + kAfterSound.size() + remarks.size() - 1;
}

// Put together here, because a Value would hold the sound once more.
std::string caption_json(std::string_view bytes, const std::string& remarks) {
  std::string json;
  json.reserve(caption_size(bytes.size(), remarks));
  json += kBeforeSound;
  append_base64(json, bytes);
  json += kAfterSound;
  json.append(remarks, 1);  // without its brace
  return json;
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
      std::string line =
          caption_json(bytes ? *bytes : "", remarks_json(options.format, std::move(times), warnings));
      line += '\n';
      if (exchange.begun()) {
        co_await exchange.write(line);
      } else {
        Response head = answer.stream_head(kCaptionLines, options.headers);
        head.body = std::move(line);
        co_await exchange.begin(std::move(head));
        speaking.heard();
      }
    }
    if (!bytes) break;
  }
  co_await exchange.end();
}

// The file ends with it: only its text waits for a slow client.
Task<std::string> whole_object(SpokenAnswer& answer, audio::Format format, bool timestamps) {
  const std::string file = co_await answer.whole_file();
  Value times = timestamps ? times_of(answer.new_words()) : Value();
  const std::string remarks = remarks_json(format, std::move(times), answer.summary().warnings);
  answer.hold(caption_size(file.size(), remarks));
  std::string json = caption_json(file, remarks);
  answer.let_go(file.size());
  co_return json;
}

Task<> send_object(Exchange& exchange, SpokenAnswer& answer, Speaking& speaking, const AnswerOptions& options,
                   bool timestamps) {
  std::string json = co_await whole_object(answer, options.format, timestamps);
  Response response = answer.head("application/json", options.headers);
  response.body = std::move(json);
  co_await exchange.respond(std::move(response));
  speaking.heard();
}

}  // namespace

Task<> answer_with_captions(Services& services, Engine& engine, Exchange& exchange, SpeechRequest request,
                            AnswerOptions options, bool timestamps) {
  Speaking speaking(services.metrics);
  request.delivery = options.streaming ? Delivery::streaming : Delivery::whole;
  auto source = co_await submit_source(services, engine, exchange, std::move(request), options);
  SpokenAnswer answer(services, engine, exchange, std::move(source));
  answer.set_encoder(options, !options.streaming);
  if (options.streaming)
    co_await send_lines(exchange, answer, speaking, options, timestamps);
  else
    co_await send_object(exchange, answer, speaking, options, timestamps);
}

}  // namespace shoal::server
