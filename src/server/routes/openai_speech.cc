#include "server/routes/openai_speech.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "server/routes/speech_fields.h"

namespace shoal::server {
namespace {

// Players of OpenAI's pcm take it for 24 kHz without asking.
constexpr int kPcmRateHz = 24000;
constexpr std::array<std::string_view, 3> kOpenAiModels = {"tts-1", "tts-1-hd", "gpt-4o-mini-tts"};

[[noreturn]] void refuse_field(ErrorCode code, const std::string& field, std::string why) {
  throw BodyError(code, field, std::move(why));
}

// A name, or {"id": name}.
Field<OpenAiSpeech> voice_field() {
  const Schema<OpenAiSpeech> by_id = {text("id", &OpenAiSpeech::voice, "the voice's name").required()};
  Field<OpenAiSpeech> field = text("voice", &OpenAiSpeech::voice,
                                   "a voice of /v1/audio/voices; OpenAI's names speak with the model's own "
                                   "voice; also an object {\"id\": name}");
  field.read = [by_id, as_text = field.read](const Value& value, const std::string& where,
                                             OpenAiSpeech& into) {
    if (value.as<Value::Object>())
      into.voice = by_id.read(value, where).voice;
    else
      as_text(value, where, into);
  };
  return field;
}

}  // namespace

Schema<OpenAiSpeech> openai_speech_schema(const ServerConfig& config) {
  using T = OpenAiSpeech;
  return {
      text("model", &T::model, "a model of /v1/models, or tts-1, tts-1-hd, gpt-4o-mini-tts").required(),
      text("input", &T::input, "what to say").required(),
      voice_field().required(),
      choice("response_format", &T::response_format, {"mp3", "opus", "aac", "flac", "wav", "pcm"},
             "pcm is 16-bit little-endian mono")
          .otherwise("\"mp3\""),
      number("speed", &T::speed, {0.25, 4}, "only 1: these models speak at their own speed").otherwise("1"),
      refused<T>("instructions", "string",
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
             "seconds until the last sample; default: the server's"),
      list("references", &T::references, reference_clip_schema(), config.max_references,
           "clips of a voice to follow, instead of a named one"),
      boolean("stream", &T::stream, "false: one body with its length and a complete file header")
          .otherwise("true"),
      boolean("special_tokens", &T::special_tokens,
              "spellings like <|im_end|> in the input are control tokens")
          .otherwise("false"),
      integer("sample_rate", &T::sample_rate, {8000, 48000},
              "Hz of the answer; default: 24000 for pcm, else the model's"),
      // Kokoro-FastAPI's.
      refused<T>("download_format", "string", "there is no second file; ask for response_format"),
      refused<T>("return_download_link", "boolean", "answers are not kept for a download"),
      refused<T>("return_timing", "boolean", "these models give no word times"),
      refused<T>("lang_code", "string", "these models take the language from the text"),
      refused<T>("volume_multiplier", "number", "the sound keeps the model's own level", Value{1.0}),
      refused<T>("normalization_options", "object", "give normalize: true or false", Value{Value::Object{}}),
      refused<T>("allow_voice_tags", "boolean", "tags in the input are not read; send a request per voice"),
      refused<T>("voice_aliases", "object", "tags in the input are not read", Value{Value::Object{}}),
      refused<T>("ssml", "boolean", "SSML is not read; send plain text"),
  };
}

bool is_model_name(const Services& services, const std::string& name) {
  return name == services.model ||
         std::find(kOpenAiModels.begin(), kOpenAiModels.end(), name) != kOpenAiModels.end();
}

namespace {

audio::Format format_of(const OpenAiSpeech& body) {
  return audio::parse_format(body.response_format).value();
}

}  // namespace

SpeechRequest speech_request(const Services& services, const OpenAiSpeech& body) {
  if (!is_model_name(services, body.model))
    refuse_field(ErrorCode::not_found, "model", "there is none of that name; see /v1/models");
  if (body.speed != 1)
    refuse_field(ErrorCode::unsupported, "speed", "only 1: these models speak at their own speed");
  if (body.stream_format == "sse" && !body.stream)
    refuse_field(ErrorCode::invalid_argument, "stream", "events are a stream: leave it out, or take audio");
  SpeechRequest request;
  request.text = body.input;
  request.voice = engine_voice(services, body.voice);
  request.references = body.references;
  take_sampling(body, request);
  request.normalise = body.normalize;
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

void rethrow_for_openai(const Error& error, const std::string& voice) {
  const HttpError told = http_error(error);
  const bool is_argument =
      error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::too_large;
  if (is_argument && told.param == "text")
    refuse_field(error.code(), "input", error.message().substr(std::string_view("text: ").size()));
  if (error.code() == ErrorCode::not_found && !voice.empty())
    refuse_field(ErrorCode::invalid_argument, "voice", "there is none of that name; see /v1/audio/voices");
  if (is_argument && error.message().starts_with("voice \""))
    refuse_field(ErrorCode::invalid_argument, "voice", error.message());
  throw;
}

}  // namespace shoal::server
