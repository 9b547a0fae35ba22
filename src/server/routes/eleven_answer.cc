#include "server/routes/eleven_answer.h"

#include "base/base64.h"
#include "server/routes/spoken_answer.h"

namespace shoal::server {
namespace {

Value list_of(const std::vector<double>& seconds) {
  Value::Array list;
  for (const double at : seconds) list.push_back({at});
  return {std::move(list)};
}

// Follows the words of an answer.
class Characters {
 public:
  Characters(std::string text, bool known) : text_(std::move(text)), known_(known) {}

  // The members of the object for sound that ends at `end_s`.
  std::string json(const std::string& audio, const std::vector<SpokenWord>& words, bool last, double end_s) {
    TimedCharacters spoken = spoken_characters(words, spoken_s_, first_);
    first_ = first_ && words.empty();
    if (!words.empty()) spoken_s_ = words.back().end_s;
    TimedCharacters written = text_.take(words);
    if (last && known_) {
      const TimedCharacters rest = text_.rest(end_s);
      for (size_t i = 0; i < rest.characters.size(); ++i)
        written.add(rest.characters[i], rest.start_s[i], rest.end_s[i]);
    }
    return write_json({Value::Object{{"audio_base64", {to_base64(audio)}},
                                     {"alignment", alignment_value(written)},
                                     {"normalized_alignment", alignment_value(spoken)}}});
  }

 private:
  CharacterTimes text_;
  const bool known_;
  bool first_ = true;
  double spoken_s_ = 0;
};

Task<> send_timed_lines(Exchange& exchange, SpokenAnswer& answer, Speaking& speaking,
                        const AnswerOptions& options, Characters characters) {
  while (true) {
    const std::optional<std::string> bytes = co_await answer.next_bytes();
    const std::vector<SpokenWord> words = answer.new_words();
    if (bytes && bytes->empty() && words.empty()) continue;
    const std::string audio = bytes.value_or("");
    std::string line = characters.json(audio, words, !bytes, answer.summary().audio_s()) + "\n";
    if (exchange.begun()) {
      co_await exchange.write(line);
    } else {
      Response head = answer.stream_head("application/x-ndjson", options.headers);
      head.body = std::move(line);
      co_await exchange.begin(std::move(head));
      speaking.heard();
    }
    if (!bytes) break;
  }
  co_await exchange.end();
}

Task<> send_timed_object(Exchange& exchange, SpokenAnswer& answer, Speaking& speaking,
                         const AnswerOptions& options, Characters characters) {
  const std::string file = co_await answer.whole_file();
  answer.hold(base64_size(file.size()));
  const std::vector<SpokenWord> words = answer.new_words();
  Response response = answer.head("application/json", options.headers);
  response.body = characters.json(file, words, true, answer.summary().audio_s());
  co_await exchange.respond(std::move(response));
  speaking.heard();
}

}  // namespace

Value alignment_value(const TimedCharacters& times) {
  if (times.characters.empty()) return {};
  Value::Array characters;
  for (const std::string& character : times.characters) characters.push_back({character});
  return {Value::Object{{"characters", {std::move(characters)}},
                        {"character_start_times_seconds", list_of(times.start_s)},
                        {"character_end_times_seconds", list_of(times.end_s)}}};
}

Task<> answer_with_characters(Services& services, Engine& engine, Exchange& exchange, SpeechRequest request,
                              AnswerOptions options) {
  Speaking speaking(services.metrics);
  request.delivery = options.streaming ? Delivery::streaming : Delivery::whole;
  Characters characters(request.text, engine.traits().phonemes);
  auto source = co_await submit_source(services, engine, exchange, std::move(request), options);
  SpokenAnswer answer(services, engine, exchange, std::move(source));
  answer.set_encoder(options, !options.streaming);
  if (options.streaming)
    co_await send_timed_lines(exchange, answer, speaking, options, std::move(characters));
  else
    co_await send_timed_object(exchange, answer, speaking, options, std::move(characters));
}

}  // namespace shoal::server
