#include "server/routes/realtime_settings.h"

#include <algorithm>

#include "base/error.h"
#include "server/routes/speech_fields.h"

namespace shoal::server {
namespace {

using Settings = RealtimeSettings;
using Fields = std::vector<Field<Settings>>;

constexpr double kMostOutputTokens = 4096;
constexpr size_t kMostMetadata = 16, kLongestMetadataName = 64, kLongestMetadata = 512;
constexpr int kTelephoneHz = 8000;
const char* const kDeaf = "this server speaks and does not listen; leave it out, or send null";
const char* const kNoTools = "this server speaks texts as they are and calls no tools; leave it out";
const char* const kNoMind = "texts are spoken as they are, by no language model";

Field<Settings> inside(std::string name, const Schema<Settings>& members, std::string help) {
  FieldDoc doc{.name = std::move(name), .type = "object", .help = std::move(help), .items = members.docs()};
  return {std::move(doc), [members](const Value& value, const std::string& where, Settings& into) {
            into = members.read_onto(std::move(into), value, where);
          }};
}

template <typename Read>
Field<Settings> by_hand(std::string name, std::string type, std::string help, Read read) {
  return {{.name = std::move(name), .type = std::move(type), .help = std::move(help)}, std::move(read)};
}

// A name, or {"id": name}.
Field<Settings> realtime_voice_field() {
  const auto read = [](const Value& value, const std::string& where, Settings& into) {
    static const Schema<Settings> by_id = {text("id", &Settings::voice, "its name").required()};
    if (value.as<Value::Object>())
      into.voice = by_id.read(value, where).voice;
    else
      into.voice = read_text(value, where);
  };
  return by_hand("voice", "string", "a voice of /v1/audio/voices, or a name of OpenAI's", read);
}

struct WireFormat {
  std::string type = "audio/pcm";
  std::optional<int> rate;
};

Field<Settings> format_field() {
  const auto read = [](const Value& value, const std::string& where, Settings& into) {
    static const Schema<WireFormat> members = {
        choice("type", &WireFormat::type, {"audio/pcm", "audio/pcmu", "audio/pcma"}, "the codec"),
        integer("rate", &WireFormat::rate, kSampleRatesHz, "in Hz")};
    const WireFormat wire = members.read(value, where);
    const bool pcm = wire.type == "audio/pcm";
    if (!pcm && wire.rate.value_or(kTelephoneHz) != kTelephoneHz)
      throw BodyError(ErrorCode::invalid_argument, where + ".rate",
                      concat("expected 8000 for G.711, got ", *wire.rate));
    into.format = wire.type;
    into.rate_hz = pcm ? wire.rate.value_or(Settings().rate_hz) : kTelephoneHz;
  };
  return by_hand("format", "object", "{type, rate}: audio/pcm (s16le), audio/pcmu, audio/pcma", read);
}

Field<Settings> beta_format_field() {
  const auto read = [](const Value& value, const std::string& where, Settings& into) {
    const std::string& word = read_choice(value, where, {"pcm16", "g711_ulaw", "g711_alaw"});
    into.format = word == "pcm16" ? "audio/pcm" : word == "g711_ulaw" ? "audio/pcmu" : "audio/pcma";
    into.rate_hz = word == "pcm16" ? Settings().rate_hz : kTelephoneHz;
  };
  return by_hand("output_audio_format", "string", "of the beta: pcm16, g711_ulaw, g711_alaw", read);
}

Field<Settings> max_tokens_field(std::string name) {
  const auto read = [](const Value& value, const std::string& where, Settings& into) {
    if (value == Value{std::string("inf")})
      into.max_tokens.reset();
    else
      into.max_tokens = read_integer(value, where, {1, kMostOutputTokens});
  };
  return by_hand(std::move(name), "integer", "most sound of a response, 20 a second; or \"inf\"", read);
}

Field<Settings> modalities_field(std::string name) {
  const auto read = [](const Value& value, const std::string& where, Settings&) {
    bool audio = false;
    for (const Value& word : read_array(value, where, 2))
      audio = read_choice(word, where, {"audio", "text"}) == "audio" || audio;
    if (!audio) throw BodyError(ErrorCode::unsupported, where, "this server answers in sound: [\"audio\"]");
  };
  return by_hand(std::move(name), "array", "[\"audio\"]; text alone is refused", read);
}

Field<Settings> tool_choice_field() {
  const auto read = [](const Value& value, const std::string& where, Settings&) {
    if (value != Value{std::string("none")}) refuse(value, where, kNoTools, {std::string("auto")});
  };
  return by_hand("tool_choice", "string", "auto or none: there are no tools", read);
}

Schema<Settings> audio_schema(bool of_session) {
  Fields output = {format_field(), realtime_voice_field()};
  output.push_back(number("speed", &Settings::speed, {0.25, 4}, "2 is twice as fast, at the same pitch"));
  Fields audio = {inside("output", Schema<Settings>(std::move(output)), "format, voice, speed")};
  if (of_session) {
    const Schema<Settings> input = {
        unused<Settings>("format", "object", "nothing is heard",
                         format_value(Settings())),  // which clients send without a thought
        refused<Settings>("noise_reduction", "object", kDeaf),
        refused<Settings>("transcription", "object", kDeaf),
        refused<Settings>("turn_detection", "object", kDeaf)};
    audio.push_back(inside("input", input, "turn_detection: null, transcription: null"));
  }
  return Schema<Settings>(std::move(audio));
}

Fields common_fields(bool of_session) {
  const Value none{Value::Array{}};
  return {inside("audio", audio_schema(of_session), "output: format, voice, speed"),
          modalities_field("output_modalities"), max_tokens_field("max_output_tokens"),
          integer("seed", &Settings::seed, {0, 9007199254740992.0}, "same seed, same sound"),
          boolean("normalize", &Settings::normalize, "speak English numbers, dates, money as words"),
          text("lang_code", &Settings::lang_code, "of models that speak phonemes; default: the voice's"),
          by_hand("instructions", "string", std::string("no effect: ") + kNoMind,
                  [](const Value& value, const std::string& where, Settings& into) {
                    into.instructions = read_text(value, where);
                    if (!into.instructions.empty()) into.unused.push_back(where + ": " + kNoMind);
                  }),
          refused<Settings>("tools", "array", kNoTools, none), tool_choice_field(),
          unused<Settings>("parallel_tool_calls", "boolean", kNoMind, Value{true}),
          unused<Settings>("reasoning", "object", kNoMind),
          refused<Settings>("prompt", "object", "there are no stored prompts; send the text itself"),
          // The beta's.
          modalities_field("modalities"), realtime_voice_field(), beta_format_field(),
          max_tokens_field("max_response_output_tokens"), unused<Settings>("temperature", "number", kNoMind)};
}

// What clients may say back of what they were told.
Field<Settings> told(std::string name) {
  return by_hand(std::move(name), "string", "no effect: told by the server",
                 [](const Value&, const std::string&, Settings&) {});
}

void read_metadata(const Value& value, const std::string& where, Settings& into) {
  const Value::Object& pairs = read_object(value, where);
  if (pairs.size() > kMostMetadata)
    throw BodyError(ErrorCode::invalid_argument, where,
                    concat("expected at most ", kMostMetadata, " pairs, found ", pairs.size()));
  for (const auto& [name, text] : pairs) {
    const std::string place = member_path(where, name);
    if (name.size() > kLongestMetadataName || read_text(text, place).size() > kLongestMetadata)
      throw BodyError(ErrorCode::invalid_argument, place,
                      concat("expected a name of at most ", kLongestMetadataName,
                             " bytes and a text of at most ", kLongestMetadata));
  }
  into.metadata = value;
}

bool is_realtime_model(const std::string& name) {
  constexpr std::string_view kNames[] = {"gpt-realtime", "gpt-4o-realtime-preview",
                                         "gpt-4o-mini-realtime-preview", "gpt-audio"};
  return std::ranges::any_of(kNames, [&](std::string_view one) { return name.starts_with(one); });
}

}  // namespace

Schema<Settings> realtime_session_schema() {
  Fields fields = common_fields(true);
  fields.push_back(
      by_hand("type", "string", "realtime", [](const Value& value, const std::string& where, Settings&) {
        refuse(value, where, kDeaf, {std::string("realtime")});
      }));
  fields.push_back(text("model", &Settings::model, "a model of /v1/models; OpenAI's names are the first"));
  fields.push_back(number("speed", &Settings::speed, {0.25, 4}, "of the beta: as audio.output.speed"));
  fields.push_back(unused<Settings>("tracing", "object", "there are no traces of it", {std::string("auto")}));
  fields.push_back(unused<Settings>("truncation", "object", "the oldest items are forgotten as with auto",
                                    {std::string("auto")}));
  fields.push_back(refused<Settings>("include", "array", kDeaf, Value{Value::Array{}}));
  fields.push_back(
      unused<Settings>("input_audio_format", "string", "nothing is heard", {std::string("pcm16")}));
  for (const char* name : {"turn_detection", "input_audio_transcription", "input_audio_noise_reduction"})
    fields.push_back(refused<Settings>(name, "object", kDeaf));
  for (const char* name : {"id", "object", "expires_at", "client_secret"}) fields.push_back(told(name));
  return Schema<Settings>(std::move(fields));
}

Schema<Settings> realtime_response_schema() {
  Fields fields = common_fields(false);
  fields.push_back(by_hand("conversation", "string",
                           "auto; none: beside the conversation, which stays as it is",
                           [](const Value& value, const std::string& where, Settings& into) {
                             into.out_of_band = read_choice(value, where, {"auto", "none"}) == "none";
                           }));
  fields.push_back(by_hand("input", "array", "items to speak instead of the conversation's",
                           [](const Value& value, const std::string& where, Settings& into) {
                             into.input = read_realtime_input(value, where);
                           }));
  fields.push_back(by_hand("metadata", "object", "told again with the response", read_metadata));
  return Schema<Settings>(std::move(fields));
}

Value format_value(const Settings& settings) {
  return {Value::Object{{"type", {settings.format}}, {"rate", {int64_t{settings.rate_hz}}}}};
}

std::string beta_format_of(const Settings& settings) {
  if (settings.format == "audio/pcm") return "pcm16";
  return settings.format == "audio/pcmu" ? "g711_ulaw" : "g711_alaw";
}

Value max_tokens_value(const Settings& settings) {
  if (settings.max_tokens) return {*settings.max_tokens};
  return {std::string("inf")};
}

namespace {

Value ga_audio_value(const Settings& settings) {
  Value::Object input{{"format", format_value(Settings())},
                      {"transcription", {}},
                      {"noise_reduction", {}},
                      {"turn_detection", {}}};
  Value::Object output{
      {"format", format_value(settings)}, {"voice", {settings.voice}}, {"speed", {settings.speed}}};
  return {Value::Object{{"input", {std::move(input)}}, {"output", {std::move(output)}}}};
}

void add_beta_members(const Settings& settings, Value::Object& members) {
  members.emplace_back("modalities", Value{Value::Array{{std::string("audio")}, {std::string("text")}}});
  members.emplace_back("voice", Value{settings.voice});
  members.emplace_back("speed", Value{settings.speed});
  members.emplace_back("input_audio_format", Value{std::string("pcm16")});
  members.emplace_back("output_audio_format", Value{beta_format_of(settings)});
  members.emplace_back("input_audio_transcription", Value{});
  members.emplace_back("turn_detection", Value{});
  members.emplace_back("max_response_output_tokens", max_tokens_value(settings));
}

}  // namespace

Value session_value(const Settings& settings, const std::string& id, bool beta) {
  Value::Object members{{"id", {id}},
                        {"object", {std::string("realtime.session")}},
                        {"model", {settings.model}},
                        {"instructions", {settings.instructions}},
                        {"tools", {Value::Array{}}},
                        {"tool_choice", {std::string("auto")}}};
  if (beta) {
    add_beta_members(settings, members);
    return {std::move(members)};
  }
  members.emplace_back("type", Value{std::string("realtime")});
  members.emplace_back("output_modalities", Value{Value::Array{{std::string("audio")}}});
  members.emplace_back("audio", ga_audio_value(settings));
  members.emplace_back("max_output_tokens", max_tokens_value(settings));
  members.emplace_back("truncation", Value{std::string("auto")});
  for (const char* absent : {"tracing", "prompt", "include"}) members.emplace_back(absent, Value{});
  return {std::move(members)};
}

LiveStart live_start_of(const Settings& settings, const Models& models) {
  LiveStart start;
  const bool first = is_realtime_model(settings.model) && !models.find(settings.model);
  start.model = first ? models.first().name : settings.model;
  start.voice = settings.voice;
  start.format = settings.format == "audio/pcm" ? "pcm" : settings.format == "audio/pcmu" ? "ulaw" : "alaw";
  start.sample_rate = settings.rate_hz;
  start.speed = settings.speed;
  start.seed = settings.seed;
  start.normalize = settings.normalize;
  start.language = settings.lang_code;
  start.unused = settings.unused;
  return start;
}

void rethrow_for_realtime(const Error& error, const std::string& where) {
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"voice", "audio.output.voice"}, {"language", "lang_code"}, {"model", "model"}};
  for (const auto& [ours, theirs] : kNames) {
    const std::string& message = error.message();
    if (message.starts_with(concat(ours, ": ")))
      throw BodyError(error.code(), concat(where, ".", theirs), message.substr(ours.size() + 2));
    if (message.starts_with(concat(ours, " \"")))
      throw BodyError(error.code(), concat(where, ".", theirs), message.substr(ours.size() + 1));
  }
  throw;
}

}  // namespace shoal::server
