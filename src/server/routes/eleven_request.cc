#include "server/routes/eleven_request.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "server/routes/speech_fields.h"
#include "shoal/voices.h"

namespace shoal::server {
namespace {

using Eleven = ElevenRequest;

const std::vector<std::string>& eleven_formats() {
  static const std::vector<std::string> names = {
      "mp3_22050_32",   "mp3_24000_48",   "mp3_44100_32", "mp3_44100_64",  "mp3_44100_96",  "mp3_44100_128",
      "mp3_44100_192",  "pcm_8000",       "pcm_16000",    "pcm_22050",     "pcm_24000",     "pcm_32000",
      "pcm_44100",      "pcm_48000",      "wav_8000",     "wav_16000",     "wav_22050",     "wav_24000",
      "wav_32000",      "wav_44100",      "wav_48000",    "opus_48000_32", "opus_48000_64", "opus_48000_96",
      "opus_48000_128", "opus_48000_192", "ulaw_8000",    "alaw_8000"};
  return names;
}

// The ids of voices that every account has, and of those in older examples, by the nearest of OpenAI's.
struct AccountVoices {
  const char* openai;
  std::string_view ids;
};
constexpr AccountVoices kAccountVoices[] = {
    // Rachel, Sarah, Matilda; Aria, Laura, Bella; Domi, Elli, Jessica; River, Alice; Charlotte, Lily
    {"alloy", "21m00Tcm4TlvDq8ikWAM EXAVITQu4vr4xnSDxMaL XrExE9yKIg1WjnnlVkGX"},
    {"coral", "9BWtsMINqrJLrRacOk9x FGY2WhTYpPnrIDTdsKH5 hpp4J3VqNfWAUOO0d1Us"},
    {"nova", "AZnzlk1XvdvUeBnXmlld MF3mGyEYCl7XYWbV9V6O cgSgspJ2msm6clMCkdW9"},
    {"sage", "SAz9YHcvj6GT2YYXdXww Xb7hH8MSUJpSbSDYk0k2"},
    {"shimmer", "XB0fDUnXU5powFXDhCwa pFZP5JQG7iQjIQuC4Bku"},
    // Charlie, Harry, Josh, Arnold, Brian, Adam, Bill; George, Daniel; Callum
    {"ash",
     "IKne3meq5aSn9XLyUdCD SOYHLrjzK2X1ezoPC6cr TxGEqnHWrfWFTfGW9XjX VR6AewLTigWG4xSOukaG "
     "nPczCjzI2devNBz1zQrb pNInz6obpgDQGcFmaJgB pqHfZKP75CvOlQylNhV4"},
    {"fable", "JBFqnCBsd6RMkjVDRZzb onwK4e9ZLuTAKqWW03F9"},
    {"echo", "N2lVS1w4EtoT3dr4eOWO"},
    // Antoni, Liam, Will, Chris, Sam; Roger, Eric
    {"onyx",
     "ErXwobaYiN019PkySvjV TX3LPaxmHKxFdv7VOQHJ bIHbv24MWmeRgasZH58o iP95p4xoKVk53GoZ742B "
     "yoZ06aMxZJJ28mfd3POQ"},
    {"verse", "CwhRBWXzGAHq8TQ4Fs17 cjVigY5qzO86Huf0OWal"}};

std::string openai_voice_of(std::string_view id) {
  constexpr size_t kIdBytes = 20;
  for (const AccountVoices& voices : kAccountVoices)
    if (id.size() == kIdBytes && voices.ids.find(id) != std::string_view::npos) return voices.openai;
  return "";
}

const char* const kNoJoin = "each request is spoken by itself";

std::vector<Field<Eleven>> query_fields() {
  return {choice("output_format", &Eleven::output_format, eleven_formats(), "codec, Hz, kbit/s")
              .otherwise("\"mp3_44100_128\""),
          boolean("enable_logging", &Eleven::logging, "no effect: texts and sound are never kept")
              .otherwise("true")};
}

// What every way to ask has besides its text.
std::vector<Field<Eleven>> common_fields() {
  return {text("model_id", &Eleven::model_id,
               "a model of /v1/models; of ElevenLabs' own names, eleven_..., the first that has the voice"),
          text("language_code", &Eleven::language_code,
               "ISO 639-1, of models that speak phonemes: en, es, fr, hi, it, pt; default: the voice's"),
          integer("seed", &Eleven::seed, {0, 4294967295.0}, "same seed, same sound; drawn without one"),
          choice("apply_text_normalization", &Eleven::apply_text_normalization, {"auto", "on", "off"},
                 "speak English numbers, dates, money as words; auto: as the model wants it")
              .otherwise("\"auto\""),
          refused<Eleven>("apply_language_text_normalization", "boolean", "there is none for Japanese")};
}

Schema<Eleven> joined(std::vector<Field<Eleven>> fields, std::vector<Field<Eleven>> more) {
  std::ranges::move(more, std::back_inserter(fields));
  return Schema<Eleven>(std::move(fields));
}

// Those that a form of text could send, too: "true", "4".
Value value_of(const Request& request) {
  Value::Object members;
  for (const auto& [name, value] : request.query) {
    const auto same = [&](const auto& member) { return member.first == name; };
    if (std::ranges::any_of(members, same))
      throw BodyError(ErrorCode::invalid_argument, name, "stands twice in the query");
    members.emplace_back(name, Value{value});
  }
  return {std::move(members)};
}

bool can_speak_as(Engine& engine, const std::string& voice) {
  try {
    if (!voice.empty()) engine.voices().get(voice);
    return true;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unavailable) throw;
    return false;
  }
}

std::string voice_in(const Services& services, Engine& engine, const std::string& voice_id) {
  std::string voice = services.voice_names.voice_for(engine, voice_id);
  const std::string openai = openai_voice_of(voice_id);
  if (!openai.empty() && voice == voice_id && !can_speak_as(engine, voice))
    voice = services.voice_names.voice_for(engine, openai);
  return voice;
}

// A code of two letters as models that speak phonemes know it. English keeps the accent of the voice.
std::string language_of(Engine& engine, const std::string& voice, const std::string& code) {
  if (!engine.traits().phonemes) return code;
  if (code == "en") {
    const bool english = voice.empty() || (can_speak_as(engine, voice) &&
                                           engine.voices().get(voice).language.starts_with("en"));
    return english ? "" : "en-us";
  }
  return code == "fr" ? "fr-fr" : code == "pt" ? "pt-br" : code;
}

}  // namespace

Field<Eleven> eleven_settings_field() {
  const std::string why = "a voice sounds as its clip or its model does";
  const Schema<Eleven> members = {
      number("speed", &Eleven::speed, {0.25, 4}, "2 is twice as fast, at the same pitch").otherwise("1"),
      unused<Eleven>("stability", "number", why, Value{0.5}),
      unused<Eleven>("similarity_boost", "number", why, Value{0.75}),
      unused<Eleven>("style", "number", why, Value{0.0}),
      unused<Eleven>("use_speaker_boost", "boolean", why, Value{true})};
  FieldDoc doc{.name = "voice_settings", .type = "object", .help = "speed", .items = members.docs()};
  return {std::move(doc), [members](const Value& value, const std::string& where, Eleven& into) {
            into = members.read_onto(std::move(into), value, where);
          }};
}

Field<Eleven> eleven_dictionaries_field() {
  return refused<Eleven>("pronunciation_dictionary_locators", "array",
                         "there are no dictionaries; write [word](/phonemes/) for a Kokoro model",
                         Value{Value::Array{}});
}

Schema<Eleven> eleven_body_schema() {
  return joined({text("text", &Eleven::text, "what to say").required(), eleven_settings_field(),
                 boolean("enable_ssml_parsing", &Eleven::ssml, "the text is SSML").otherwise("false"),
                 eleven_dictionaries_field(), unused<Eleven>("previous_text", "string", kNoJoin),
                 unused<Eleven>("next_text", "string", kNoJoin),
                 unused<Eleven>("previous_request_ids", "array", kNoJoin, Value{Value::Array{}}),
                 unused<Eleven>("next_request_ids", "array", kNoJoin, Value{Value::Array{}}),
                 unused<Eleven>("use_pvc_as_ivc", "boolean", "there are no professional voices"),
                 refused<Eleven>("audio_effects", "object", "there are none", Value{Value::Object{}})},
                common_fields());
}

Schema<Eleven> eleven_query_schema() {
  return joined(query_fields(), {integer("optimize_streaming_latency", &Eleven::latency, {0, 4},
                                         "4: numbers, dates, money as they stand; otherwise no effect: sound "
                                         "leaves as soon as it is made")});
}

Schema<Eleven> eleven_socket_schema() {
  const std::string early = "sound begins as soon as a sentence is complete";
  std::vector<Field<Eleven>> own = {
      integer("inactivity_timeout", &Eleven::patience_s, {1, 180}, "seconds without a message")
          .otherwise("20"),
      refused<Eleven>("enable_ssml_parsing", "boolean", "only POST reads SSML; send plain text",
                      Value{std::string("false")}),
      boolean("auto_mode", &Eleven::auto_mode, "no effect: " + early),
      boolean("sync_alignment", &Eleven::alignment, "no effect: times come with the sound of their words"),
      unused<Eleven>("optimize_streaming_latency", "integer", early),
      refused<Eleven>("authorization", "string", "send the header xi-api-key or Authorization"),
      refused<Eleven>("single_use_token", "string", "send the header xi-api-key or Authorization")};
  std::ranges::move(query_fields(), std::back_inserter(own));
  return joined(std::move(own), common_fields());
}

ElevenRequest read_query(const Schema<Eleven>& schema, const Request& request) {
  return schema.read(value_of(request));
}

ElevenFormat format_of(const Eleven& request) {
  const std::string& name = request.output_format;
  const size_t first = name.find('_'), second = name.find('_', first + 1);
  ElevenFormat format{.format = audio::parse_format(name.substr(0, first)).value()};
  std::from_chars(name.data() + first + 1, name.data() + name.size(), format.sample_rate_hz);
  if (second != std::string::npos)
    std::from_chars(name.data() + second + 1, name.data() + name.size(), format.bitrate_bps);
  format.bitrate_bps *= 1000;
  return format;
}

ElevenSpeaker speaker_of(const Services& services, const Eleven& request, const std::string& voice_id) {
  const bool any = request.model_id.empty() || request.model_id.starts_with("eleven_");
  const ServedModel* model = any ? &services.models.first() : services.models.find(request.model_id);
  if (!model) throw BodyError(ErrorCode::not_found, "model_id", "there is none of that name; see /v1/models");
  std::string voice = voice_in(services, *model->engine, voice_id);
  if (any && !can_speak_as(*model->engine, voice))
    for (const ServedModel& other : services.models.all()) {
      std::string its_voice = voice_in(services, *other.engine, voice_id);
      if (!can_speak_as(*other.engine, its_voice)) continue;
      model = &other;
      voice = std::move(its_voice);
      break;
    }
  std::string language = language_of(*model->engine, voice, request.language_code);
  return {.model = model, .voice = std::move(voice), .language = std::move(language)};
}

std::optional<bool> normalisation_of(const Eleven& request) {
  if (request.apply_text_normalization != "auto") return request.apply_text_normalization == "on";
  if (request.latency == 4) return false;
  return std::nullopt;
}

void rethrow_for_eleven(const Error& error) {
  constexpr std::pair<std::string_view, const char*> kNames[] = {{"voice", "voice_id"},
                                                                 {"language", "language_code"}};
  for (const auto& [ours, theirs] : kNames) {
    const std::string& message = error.message();
    if (message.starts_with(concat(ours, ": ")))
      throw BodyError(error.code(), theirs, message.substr(ours.size() + 2));
    if (message.starts_with(concat(ours, " \"")))
      throw BodyError(error.code(), theirs, message.substr(ours.size() + 1));
  }
  throw;
}

}  // namespace shoal::server
