#include "server/routes/openai_speech.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "server/routes/speech_fields.h"
#include "server/routes/speech_parts.h"

namespace shoal::server {
namespace {

// Players of OpenAI's pcm take it for 24 kHz without asking.
constexpr int kPcmRateHz = 24000;
constexpr double kLoudest = 10;

[[noreturn]] void refuse_field(ErrorCode code, const std::string& field, std::string why) {
  throw BodyError(code, field, std::move(why));
}

// A name, or {"id": name}.
Field<OpenAiSpeech> voice_field() {
  const Schema<OpenAiSpeech> by_id = {text("id", &OpenAiSpeech::voice, "the voice's name").required()};
  Field<OpenAiSpeech> field = text("voice", &OpenAiSpeech::voice,
                                   "a voice of /v1/audio/voices, or of Kokoro a mix, af_bella(2)+af_sky(1); "
                                   "OpenAI's names stand for the nearest of them; required, but of "
                                   "Kokoro models");
  field.doc.forms = {
      {.name = "voice", .type = "object", .help = "the same", .required = true, .items = by_id.docs()}};
  field.read = [by_id, as_text = field.read](const Value& value, const std::string& where,
                                             OpenAiSpeech& into) {
    if (value.as<Value::Object>())
      into.voice = by_id.read(value, where).voice;
    else
      as_text(value, where, into);
  };
  return field;
}

// Kokoro-FastAPI's options: one supported switch, and finer ones that may only have that server's default
// values.
Field<OpenAiSpeech> normalization_field() {
  using T = OpenAiSpeech;
  const auto fixed = [](const char* name, bool usual) {
    const std::string why = concat("only ", usual ? "true" : "false",
                                   ": the rules for texts are turned on and off as a whole, by normalize");
    FieldDoc doc{.name = name, .type = "boolean", .help = why};
    return Field<T>{std::move(doc), [usual, why](const Value& value, const std::string& where, T& into) {
                      if (read_boolean(value, where) != usual) into.unused.push_back(where + ": " + why);
                    }};
  };
  const Schema<T> options = {boolean("normalize", &T::normalization, "as the field normalize"),
                             fixed("unit_normalization", false),
                             fixed("url_normalization", true),
                             fixed("email_normalization", true),
                             fixed("optional_pluralization_normalization", true),
                             fixed("phone_normalization", true),
                             fixed("replace_remaining_symbols", true)};
  FieldDoc doc{
      .name = "normalization_options",
      .type = "object",
      .help = "Kokoro-FastAPI's: {\"normalize\": true or false}; its finer switches as they are unasked",
      .items = options.docs()};
  return {std::move(doc), [options](const Value& value, const std::string& where, T& into) {
            T read = options.read(value, where);
            into.normalization = read.normalization;
            std::ranges::move(read.unused, std::back_inserter(into.unused));
          }};
}

std::vector<Field<OpenAiSpeech>> speech_fields(const ServerConfig& config) {
  using T = OpenAiSpeech;
  return {
      text("model", &T::model,
           "a model of /v1/models; tts-1, tts-1-hd and gpt-4o-mini-tts are the first, kokoro is the first "
           "Kokoro "
           "model, and the default where there is one; else required"),
      text("input", &T::input, "what to say").required(),
      voice_field(),
      choice("response_format", &T::response_format, audio::format_names(),
             "pcm is 16-bit little-endian mono; ulaw and alaw are G.711 at 8 kHz")
          .otherwise("\"mp3\""),
      number("speed", &T::speed, {0.25, 4}, "2 is twice as fast, at the same pitch").otherwise("1"),
      unused<T>("instructions", "string",
                "these models follow no instructions; a reference clip sets the voice and its mood"),
      choice("stream_format", &T::stream_format, {"audio", "sse"}, "bytes of sound, or server-sent events")
          .otherwise("\"audio\""),
      integer("seed", &T::seed, {0}, "same seed, same sound; drawn without one"),
      number("temperature", &T::temperature, {0, 2}, "default: the model's own"),
      number("top_p", &T::top_p, {0, 1}, "0 is greedy; default: the model's own"),
      integer("top_k", &T::top_k, {0}, "0: no limit; default: the model's own"),
      number("repetition_penalty", &T::repetition_penalty, {0.01, 2}, "default: the model's own"),
      integer("max_new_tokens", &T::max_new_tokens, {0, 1 << 20},
              "most frames of one utterance; 0: up to the context limit")
          .otherwise("1024"),
      integer("chunk_length", &T::chunk_length, {0, 1000},
              "longest utterance in bytes, from 50 on; 0: the text is never split")
          .otherwise("200"),
      boolean("normalize", &T::normalize, "speak English numbers, dates, money as words"),
      number("timeout", &T::timeout, {0.001, static_cast<double>(config.max_timeout_s)},
             "seconds that it may wait for the server; default: the server's"),
      list("references", &T::references, reference_clip_schema(), config.max_references,
           "clips of a voice to follow, instead of a named one"),
      voices_field(&T::voices),
      boolean("stream", &T::stream, "false: one body with its length and a complete file header")
          .otherwise("true"),
      boolean("special_tokens", &T::special_tokens,
              "spellings like <|im_end|> in the input are control tokens")
          .otherwise("false"),
      integer("sample_rate", &T::sample_rate, kSampleRatesHz,
              "Hz of the answer; default: 24000 for pcm, 8000 for ulaw and alaw, else the model's"),
      boolean(
          "strict_phonemes", &T::strict_phonemes,
          "phonemes that the model lacks are an error instead of a warning; of models that speak phonemes")
          .otherwise("false"),
      // Kokoro-FastAPI's.
      unused<T>("download_format", "string", "there is no second file; ask for response_format"),
      unused<T>("return_download_link", "boolean", "answers are not kept for a download"),
      unused<T>("return_timing", "boolean", "ask /dev/captioned_speech for the times of words"),
      text("lang_code", &T::lang_code,
           "of the input, of models that speak phonemes: a, b, e, f, h, i, p or en-us, en-gb, es, fr-fr, hi, "
           "it, "
           "pt-br; default: the voice's"),
      number("volume_multiplier", &T::volume_multiplier, {0, kLoudest},
             "of the samples: 2 is 6 dB louder; clipped beyond full scale")
          .otherwise("1"),
      normalization_field(),
      refused<T>("allow_voice_tags", "boolean", "tags in the input are not read; send a request per voice"),
      unused<T>("voice_aliases", "object", "tags in the input are not read", Value{Value::Object{}}),
      boolean("ssml", &T::ssml, "the input is SSML: speak, p, s, break, say-as, sub, phoneme, prosody, voice")
          .otherwise("false"),
  };
}

}  // namespace

Schema<OpenAiSpeech> openai_speech_schema(const ServerConfig& config) {
  return Schema<OpenAiSpeech>(speech_fields(config));
}

std::vector<Field<OpenAiSpeech>> openai_speech_fields(const ServerConfig& config,
                                                      std::initializer_list<std::string_view> names) {
  std::vector<Field<OpenAiSpeech>> all = speech_fields(config), chosen;
  for (const std::string_view name : names) {
    const auto field = std::ranges::find_if(all, [&](const auto& one) { return one.doc.name == name; });
    CHECK(field != all.end(), "no field is called ", name);
    chosen.push_back(std::move(*field));
  }
  return chosen;
}

Schema<OpenAiSpeech> captioned_speech_schema(const ServerConfig& config) {
  std::vector<Field<OpenAiSpeech>> fields = speech_fields(config);
  std::erase_if(fields, [](const auto& field) { return field.doc.name == "stream_format"; });
  fields.push_back(boolean("return_timestamps", &OpenAiSpeech::return_timestamps,
                           "false: timestamps is null, as of models that know no times of words")
                       .otherwise("true"));
  return Schema<OpenAiSpeech>(std::move(fields));
}

const ServedModel& model_of(const Models& models, const OpenAiSpeech& body) {
  if (!body.model.empty()) return models.named(body.model);
  const ServedModel* kokoro = models.find_with(&ModelTraits::phonemes);
  if (!kokoro) fail_missing("", "model");
  return *kokoro;
}

namespace {

audio::Format format_of(const OpenAiSpeech& body) {
  return audio::parse_format(body.response_format).value();
}

}  // namespace

SpeechRequest speech_request(const Services& services, Engine& engine, const OpenAiSpeech& body) {
  if (!body.voice && body.voices.empty() && !engine.traits().own_voices) fail_missing("", "voice");
  if (body.normalize && body.normalization && *body.normalize != *body.normalization)
    refuse_field(ErrorCode::invalid_argument, "normalization_options.normalize",
                 "says another thing than normalize; give one of them");
  if (body.stream_format == "sse" && !body.stream)
    refuse_field(ErrorCode::invalid_argument, "stream", "events are a stream: leave it out, or take audio");
  SpeechRequest request;
  request.text = body.input;
  request.voice = services.voice_names.voice_for(engine, body.voice.value_or(""),
                                                 !body.references.empty() || !body.voices.empty());
  request.references = body.references;
  request.voices = voices_for(services, engine, body.voices);
  take_sampling(body, request);
  request.normalise = body.normalize ? body.normalize : body.normalization;
  request.speed = body.speed;
  request.volume = body.volume_multiplier;
  request.language = body.lang_code;
  request.strict_phonemes = body.strict_phonemes;
  request.unused = body.unused;
  if (body.timeout) request.timeout = as_timeout(*body.timeout);
  return request;
}

AnswerOptions answer_options(const OpenAiSpeech& body) {
  AnswerOptions options{.format = format_of(body), .streaming = body.stream};
  options.sample_rate_hz = body.sample_rate;
  if (options.format == audio::Format::pcm_s16le && body.sample_rate == 0)
    options.sample_rate_hz = kPcmRateHz;
  if (body.sample_rate == 0) return options;
  try {  // not every format can carry every rate
    audio::make_encoder(options.format, {.sample_rate_hz = body.sample_rate},
                        [](std::span<const std::byte>) {});
  } catch (const Error& error) {
    refuse_field(ErrorCode::invalid_argument, "sample_rate", error.message());
  }
  return options;
}

void take_ssml(Engine& engine, const OpenAiSpeech& body, SpeechRequest& request, AnswerOptions& options) {
  if (body.ssml) options.parts = read_ssml(engine, request);
}

void rethrow_for_openai(const Error& error, const std::string& voice) {
  const HttpError told = http_error(error);
  const auto under = [&](const char* field) {
    refuse_field(error.code(), field, error.message().substr(told.param.size() + 2));
  };
  const bool is_argument = error.code() == ErrorCode::invalid_argument ||
                           error.code() == ErrorCode::too_large || error.code() == ErrorCode::unsupported;
  if (is_argument && told.param == "text") under("input");
  if (is_argument && told.param == "language") under("lang_code");
  const bool names_voice = error.message().starts_with("voice \"");
  if (names_voice && (is_argument || error.code() == ErrorCode::not_found))
    refuse_field(ErrorCode::invalid_argument, "voice",
                 error.message().substr(std::string_view("voice ").size()));
  if (error.code() == ErrorCode::not_found && told.param == "voice")
    refuse_field(ErrorCode::invalid_argument, "voice", error.message().substr(told.param.size() + 2));
  if (error.code() == ErrorCode::not_found && !voice.empty())
    refuse_field(ErrorCode::invalid_argument, "voice", "there is none of that name; see /v1/audio/voices");
  throw;
}

}  // namespace shoal::server
