#include "server/routes/fish_request.h"

#include <cmath>

#include "server/body/schema_fields.h"
#include "server/routes/speech_fields.h"

namespace shoal::server {
namespace {

// The cloud API's: {"speed": 0.5 to 2, "volume": -20 to 20 dB}, either missing.
Field<FishRequest> prosody_field() {
  using T = FishRequest;
  const Schema<T> members = {
      number("speed", &T::prosody_speed, {0.25, 4}, "as the field speed"),
      number("volume", &T::volume_db, {-20, 20}, "decibels; clipped beyond full scale").otherwise("0"),
      unused<T>("normalize_loudness", "boolean", "the sound keeps the level that the model gives it")};
  FieldDoc doc{.name = "prosody", .type = "object", .help = "speed and volume", .items = members.docs()};
  return {std::move(doc), [members](const Value& value, const std::string& where, T& into) {
            into = members.read_onto(std::move(into), value, where);
          }};
}

// True in the cloud API unless said otherwise, and always here.
Field<FishRequest> conditioning_field() {
  const std::string name = "condition_on_previous_chunks",
                    why = "utterances always follow the first one's voice";
  FieldDoc doc{.name = name, .type = "boolean", .help = why};
  return {std::move(doc), [why](const Value& value, const std::string& where, FishRequest& into) {
            if (!read_boolean(value, where)) into.unused.push_back(where + ": " + why);
          }};
}

// The official server seeds with the magnitude (set_seed in fish-speech): -1 is 1.
Field<FishRequest> seed_field() {
  FieldDoc doc{.name = "seed",
               .type = "integer",
               .help = "same seed, same sound; of a negative one its magnitude; drawn without one"};
  return {std::move(doc), [](const Value& value, const std::string& where, FishRequest& into) {
            const int64_t seed = read_integer(value, where, Range());
            into.seed = seed < 0 ? ~static_cast<uint64_t>(seed) + 1 : static_cast<uint64_t>(seed);
          }};
}

// The bitrates that the cloud API has, in kbit/s.
void check_bitrate(const char* field, int kbps, std::initializer_list<int> known) {
  std::string list;
  for (const int one : known) {
    if (one == kbps) return;
    list += (list.empty() ? "" : ", ") + std::to_string(one);
  }
  throw BodyError(ErrorCode::invalid_argument, field,
                  "expected one of " + list + ", found " + std::to_string(kbps));
}

}  // namespace

Schema<FishRequest> fish_request_schema(const ServerConfig& config) {
  using T = FishRequest;
  const std::string cloud_only = "belongs to the hosted service; this server has nothing for it";
  return {
      text("text", &T::text, "what to say").required(),
      integer("chunk_length", &T::chunk_length, {100, 1000}, "longest utterance in bytes").otherwise("200"),
      choice("format", &T::format, {"wav", "pcm", "mp3", "opus", "flac"}, "16-bit mono; opus is Ogg Opus")
          .otherwise("\"wav\""),
      choice("latency", &T::latency, {"normal", "balanced"}, "no effect: sound leaves as soon as it is made")
          .otherwise("\"normal\""),
      list("references", &T::references, reference_clip_schema(), config.max_references,
           "clips of a voice to follow"),
      text("reference_id", &T::reference_id, "a stored voice; takes precedence over references"),
      seed_field(),
      choice("use_memory_cache", &T::use_memory_cache, {"on", "off"},
             "no effect: encoded clips are kept by their content")
          .otherwise("\"off\""),
      boolean("normalize", &T::normalize, "false: the text as it stands; true: as the model wants it")
          .otherwise("true"),
      boolean("streaming", &T::streaming,
              "sound as it is made; wav then comes as bare 16-bit samples, as official clients expect")
          .otherwise("false"),
      integer("max_new_tokens", &T::max_new_tokens, {0, 1 << 20},
              "most frames of one utterance; 0: up to the context limit")
          .otherwise("1024"),
      number("top_p", &T::top_p, {0.1, 1}, "share of probability that is sampled from").otherwise("0.8"),
      number("repetition_penalty", &T::repetition_penalty, {0.9, 2}, "of recent codes; 1: none")
          .otherwise("1.1"),
      number("temperature", &T::temperature, {0.1, 1}, "of sampling; lower is steadier").otherwise("0.8"),
      // The cloud API's.
      integer("sample_rate", &T::sample_rate, kSampleRatesHz, "Hz of the answer; default: the model's"),
      integer("mp3_bitrate", &T::mp3_bitrate, {0, 192}, "kbit/s of mp3: 64, 128 or 192"),
      integer("opus_bitrate", &T::opus_bitrate, {-1000, 64},
              "kbit/s of opus: -1000 (ours), 24, 32, 48 or 64"),
      prosody_field(),
      conditioning_field(),
      unused<T>("min_chunk_length", "integer", cloud_only),
      unused<T>("early_stop_threshold", "number", cloud_only, Value{1.0}),
      unused<T>("emotion", "string", cloud_only),
      // Ours.
      number("timeout", &T::timeout, {0.001, static_cast<double>(config.max_timeout_s)},
             "seconds until the last sample; default: the server's"),
      integer("top_k", &T::top_k, {0}, "0: no limit; default: the model's own"),
      boolean("special_tokens", &T::special_tokens,
              "spellings like <|im_end|> in the text are control tokens")
          .otherwise("false"),
      text("model", &T::model, "a model of /v1/models; default: the first"),
      number("speed", &T::speed, {0.25, 4}, "2 is twice as fast, at the same pitch").otherwise("1"),
      text("language", &T::language,
           "of the text, of models that speak phonemes: a, en-us, en-gb, es, fr-fr, hi, it, pt-br; default: "
           "the voice's"),
  };
}

SpeechRequest speech_request(const Services& services, Engine& engine, const FishRequest& body) {
  SpeechRequest request;
  request.text = body.text;
  request.voice = services.voice_names.voice_for(engine, body.reference_id);
  if (body.reference_id.empty()) request.references = body.references;
  take_sampling(body, request);
  forget_usual_sampling(engine, request);
  if (body.prosody_speed && body.speed != 1 && *body.prosody_speed != body.speed)
    throw BodyError(ErrorCode::invalid_argument, "prosody.speed",
                    "says another thing than speed; give one of them");
  request.speed = body.prosody_speed.value_or(body.speed);
  request.volume = static_cast<float>(std::pow(10, body.volume_db / 20));
  request.language = body.language;
  request.unused = body.unused;
  if (!body.normalize) request.normalise = false;
  if (body.timeout) request.timeout = as_timeout(*body.timeout);
  return request;
}

AnswerOptions answer_options(const FishRequest& body) {
  AnswerOptions options{.format = audio::parse_format(body.format).value(),
                        .sample_rate_hz = body.sample_rate,
                        .streaming = body.streaming,
                        .bare_wav = true};
  if (options.format == audio::Format::pcm_s16le) options.content_type = "application/octet-stream";
  options.headers.add("Content-Disposition", "attachment; filename=audio." + body.format);
  if (body.mp3_bitrate != 0) check_bitrate("mp3_bitrate", body.mp3_bitrate, {64, 128, 192});
  if (body.opus_bitrate != 0) check_bitrate("opus_bitrate", body.opus_bitrate, {-1000, 24, 32, 48, 64});
  if (options.format == audio::Format::mp3) options.encoder.bitrate_bps = body.mp3_bitrate * 1000;
  if (options.format == audio::Format::opus && body.opus_bitrate > 0)
    options.encoder.bitrate_bps = body.opus_bitrate * 1000;
  return options;
}

}  // namespace shoal::server
