#include "server/routes/live_messages.h"

#include <algorithm>
#include <array>
#include <utility>

#include "audio/encoder.h"
#include "server/routes/speech_fields.h"
#include "server/routes/speech_warnings.h"

namespace shoal::server {
namespace {

constexpr double kLargestSeed = 9007199254740992.0;  // 2^53: what every reader of JSON holds exactly
constexpr double kMostLiveFrames = 1 << 20;
constexpr double kLongestTimeoutS = 86'400;
constexpr size_t kLongestId = 128;

struct Bare {
  std::string type;
};
struct Text : Bare {
  std::string text;
};

using LiveVerb = LiveMessage::Verb;
constexpr std::array<std::pair<std::string_view, LiveVerb>, 6> kVerbs = {{{"start", LiveVerb::start},
                                                                          {"text", LiveVerb::text},
                                                                          {"flush", LiveVerb::flush},
                                                                          {"end", LiveVerb::end},
                                                                          {"cancel", LiveVerb::cancel},
                                                                          {"ping", LiveVerb::ping}}};

template <typename T>
Field<T> type_field() {
  FieldDoc doc{.name = "type", .type = "string", .help = "What the message asks for.", .required = true};
  return {std::move(doc), [](const Value&, const std::string&, T&) {}};
}

Schema<LiveStart> start_schema(int max_references) {
  return {
      type_field<LiveStart>(),
      text("id", &LiveStart::id, "Named by every message about this utterance; at most 128 bytes."),
      text("model", &LiveStart::model, "A model of /v1/models; absent: the first."),
      text("voice", &LiveStart::voice, "A voice of /v1/audio/voices; \"default\": the model's own."),
      choice("format", &LiveStart::format, audio::format_names(),
             "What the binary messages hold, one after the other.")
          .otherwise("\"pcm\""),
      integer("sample_rate", &LiveStart::sample_rate, kSampleRatesHz, "In Hz; absent: the model's own."),
      list("references", &LiveStart::references, reference_clip_schema(), max_references,
           "Clips of a voice to follow."),
      integer("seed", &LiveStart::seed, {0, kLargestSeed}, "Absent: drawn; `started` says which."),
      number("temperature", &LiveStart::temperature, {0, 2}, "Sampling temperature."),
      number("top_p", &LiveStart::top_p, {0, 1}, "Share of probability that is sampled from; 0: greedy."),
      integer("top_k", &LiveStart::top_k, {0, 1 << 20}, "Codes that are sampled from; 0: no limit."),
      number("repetition_penalty", &LiveStart::repetition_penalty, {0, 2},
             "Penalty of recent codes; 1: none."),
      boolean("normalize", &LiveStart::normalize, "Speak English numbers, dates, money and units as words."),
      integer("max_new_tokens", &LiveStart::max_new_tokens, {0, kMostLiveFrames},
              "Longest segment in frames; 0: up to the context limit.")
          .otherwise("1024"),
      integer("chunk_length", &LiveStart::chunk_length, {50, 1000}, "Longest segment of text in bytes.")
          .otherwise("200"),
      number("speed", &LiveStart::speed, {0.25, 4}, "2 is twice as fast, at the same pitch.").otherwise("1"),
      number("volume", &LiveStart::volume, {0, 10}, "Factor of the samples; clipped beyond full scale.")
          .otherwise("1"),
      text("language", &LiveStart::language,
           "Of the text, of models that speak phonemes; absent: the voice's."),
      number("timeout", &LiveStart::timeout, {0.001, kLongestTimeoutS},
             "Seconds that a segment may take from its text to its last sound; absent: the server's.")};
}

const Schema<Text>& text_schema() {
  static const Schema<Text> schema = {type_field<Text>(),
                                      text("text", &Text::text, "The next piece, in UTF-8.").required()};
  return schema;
}

const Schema<Bare>& bare_schema() {
  static const Schema<Bare> schema = {type_field<Bare>()};
  return schema;
}

LiveVerb verb_of(const Value& message) {
  read_object(message, "");
  const Value* type = message.find("type");
  if (!type) fail_missing("", "type");
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all;
    for (const auto& [word, verb] : kVerbs) all.emplace_back(word);
    return all;
  }();
  const std::string& word = read_choice(*type, "type", words);
  return std::ranges::find(kVerbs, word, &decltype(kVerbs)::value_type::first)->second;
}

std::string written(std::string type, Value::Object members) {
  members.emplace(members.begin(), "type", Value{std::move(type)});
  return write_json({std::move(members)});
}

Value of_seed(uint64_t seed) { return {static_cast<int64_t>(seed)}; }

}  // namespace

LiveReader::LiveReader(int max_references) : start_(start_schema(max_references)) {}

LiveMessage LiveReader::read(std::string_view json) const {
  const Value value = read_json(json);
  LiveMessage message{.verb = verb_of(value), .start = {}, .text = {}};
  switch (message.verb) {
    case LiveVerb::start:
      message.start = start_.read(value);
      if (message.start.id.size() > kLongestId)
        throw BodyError(ErrorCode::invalid_argument, "id",
                        concat("expected at most ", kLongestId, " bytes, got ", message.start.id.size()));
      break;
    case LiveVerb::text:
      message.text = text_schema().read(value).text;
      break;
    case LiveVerb::flush:
    case LiveVerb::end:
    case LiveVerb::cancel:
    case LiveVerb::ping:
      bare_schema().read(value);
      break;
  }
  return message;
}

std::string live_started(const LiveStarted& started) {
  return written("started", {{"id", {started.id}},
                             {"format", {started.format}},
                             {"content_type", {started.content_type}},
                             {"sample_rate", {int64_t{started.sample_rate_hz}}},
                             {"seed", of_seed(started.seed)}});
}

std::string live_segment(const std::string& id, int64_t index, const std::string& text, double at_s) {
  return written("segment", {{"id", {id}}, {"index", {index}}, {"text", {text}}, {"at_seconds", {at_s}}});
}

std::string live_done(const LiveDone& done) {
  Value::Object members{{"id", {done.id}},
                        {"outcome", {done.outcome}},
                        {"seconds", {done.seconds}},
                        {"segments", {done.segments}},
                        {"seed", of_seed(done.seed)}};
  if (done.cut_at_frames > 0) members.emplace_back("cut_at_frames", Value{done.cut_at_frames});
  if (!done.warnings.empty()) members.emplace_back("warnings", warnings_value(done.warnings));
  return written("done", std::move(members));
}

std::string live_error(const std::string& id, const HttpError& error, const std::string& request_id) {
  Value::Object members;
  if (!id.empty()) members.emplace_back("id", Value{id});
  members.emplace_back("code", Value{std::string(name_of(error.code))});
  members.emplace_back("message", Value{error.message});
  if (!error.param.empty()) members.emplace_back("param", Value{error.param});
  if (error.retry_after_s) members.emplace_back("retry_after", Value{int64_t{*error.retry_after_s}});
  members.emplace_back("request_id", Value{request_id});
  return written("error", std::move(members));
}

std::string live_pong() { return written("pong", {}); }

}  // namespace shoal::server
