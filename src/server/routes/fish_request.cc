#include "server/routes/fish_request.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "server/body/place.h"
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

// The cloud API's default is true; here it is always true.
Field<FishRequest> conditioning_field() {
  const std::string name = "condition_on_previous_chunks",
                    why = "utterances always follow the first one's voice";
  FieldDoc doc{.name = name, .type = "boolean", .help = why};
  return {std::move(doc), [why](const Value& value, const std::string& where, FishRequest& into) {
            if (!read_boolean(value, where)) into.unused.push_back(where + ": " + why);
          }};
}

// [[clip, clip], [clip]]: an array of clips for each speaker, as the hosted service has it.
void read_clips_by_speaker(const Value::Array& speakers, int64_t most, const std::string& where,
                           FishRequest& into) {
  const Schema<ReferenceClip> schema = reference_clip_schema();
  std::vector<ReferenceClip> clips;
  for (size_t speaker = 0; speaker < speakers.size(); ++speaker) {
    const std::string place = item_path(where, speaker);
    const Value::Array& own = read_array(speakers[speaker], place, most);
    for (size_t i = 0; i < own.size(); ++i) {
      clips.push_back(schema.read(own[i], item_path(place, i)));
      clips.back().speaker = static_cast<int>(speaker);
    }
  }
  if (static_cast<int64_t>(clips.size()) > most)
    throw BodyError(ErrorCode::invalid_argument, where,
                    concat("expected at most ", most, " clips, found ", clips.size()));
  into.references = std::move(clips);
}

// Forms write an array as JSON.
Field<FishRequest> references_field(int64_t most) {
  Field<FishRequest> field = list("references", &FishRequest::references, reference_clip_schema(), most,
                                  "clips of a voice to follow, or an array of clips for each speaker of the "
                                  "text; in a form JSON, or references[0][audio], a file, and "
                                  "references[0][text], its words");
  const auto of_array = [of_clips = field.read, most](const Value& value, const std::string& where,
                                                      FishRequest& into) {
    const auto* array = value.as<Value::Array>();
    if (array && !array->empty() && array->front().as<Value::Array>())
      return read_clips_by_speaker(*array, most, where, into);
    of_clips(value, where, into);
  };
  field.read = [of_array](const Value& value, const std::string& where, FishRequest& into) {
    const auto* text = value.as<std::string>();
    if (!text) return of_array(value, where, into);
    Value array;
    try {
      array = read_json(*text);
    } catch (const Error& error) {
      throw BodyError(ErrorCode::invalid_argument, where,
                      "expected an array, or one in JSON: " + error.message());
    }
    of_array(array, where, into);
  };
  return field;
}

Field<FishRequest> clip_field(int64_t most) {
  FieldDoc doc{.name = "reference_audio",
               .type = "string",
               .help =
                   "a clip of a voice to follow, in a form a file; with reference_text. A form may have both "
                   "more than once",
               .format = "byte"};
  return repeated(std::move(doc), &FishRequest::clips, most, read_bytes);
}

Field<FishRequest> clip_words_field(int64_t most) {
  FieldDoc doc{.name = "reference_text", .type = "string", .help = "the words spoken in reference_audio"};
  return repeated(std::move(doc), &FishRequest::clip_words, most, read_text);
}

// One voice, or one for each speaker.
Field<FishRequest> reference_id_field() {
  FieldDoc doc{.name = "reference_id",
               .type = "string",
               .help =
                   "a stored voice; an array: one for each speaker of the text, of models that "
                   "understand speakers; takes precedence over references"};
  FieldDoc name{.name = "voice", .type = "string", .help = "a stored voice", .required = true};
  FieldDoc many{.name = "reference_id", .type = "array", .help = "of speaker 0, 1, ...", .item = {name}};
  doc.forms = {many};
  return {std::move(doc), [](const Value& value, const std::string& where, FishRequest& into) {
            constexpr int64_t kMostSpeakers = 16;
            if (!value.as<Value::Array>()) {
              into.reference_id = read_text(value, where);
              return;
            }
            const Value::Array& array = read_array(value, where, kMostSpeakers);
            for (size_t i = 0; i < array.size(); ++i)
              into.reference_ids.push_back(read_text(array[i], item_path(where, i)));
            if (array.size() != 1) return;
            into.reference_id = std::exchange(into.reference_ids, {}).front();
          }};
}

std::vector<ReferenceClip> references_of(const FishRequest& body) {
  if (body.clips.size() != body.clip_words.size())
    throw BodyError(ErrorCode::invalid_argument,
                    body.clips.size() > body.clip_words.size() ? "reference_text" : "reference_audio",
                    concat("expected the words of each clip: found ", body.clips.size(),
                           " reference_audio and ", body.clip_words.size(), " reference_text"));
  std::vector<ReferenceClip> references = body.references;
  for (size_t i = 0; i < body.clips.size(); ++i)
    references.push_back({.audio = body.clips[i], .text = body.clip_words[i]});
  return references;
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

// The family here that corresponds to a model of the hosted service; empty: an unknown name.
std::string_view family_of_hosted(std::string_view name) {
  if (name.starts_with("s2")) return "s2";
  for (const std::string_view start : {"s1", "speech-", "agent-"})
    if (name.starts_with(start)) return "s1";
  return "";
}

// The family of a model that is loading is unknown.
bool is_of(const ServedModel& model, std::string_view family) {
  try {
    return model.engine->traits().family == family;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unavailable) throw;
    return false;
  }
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

FishRequest fish_defaults(const Request& request) {
  FishRequest defaults;
  if (!request.headers.find("model") && !request.headers.find("developer-id")) return defaults;
  defaults.format = "mp3";
  defaults.streaming = true;
  defaults.bare_wav = false;
  return defaults;
}

const ServedModel& model_of(const Models& models, const Request& request, const FishRequest& body) {
  if (!body.model.empty()) return models.named(body.model);
  const std::string* const asked = request.headers.find("model");
  if (!asked || asked->empty()) return models.first();
  if (const ServedModel* local = models.find(*asked)) return *local;
  const std::string_view family = family_of_hosted(*asked);
  if (family.empty()) return models.named(*asked);  // throws that there is none
  for (const ServedModel& model : models.all())
    if (is_of(model, family)) return model;
  return models.with_references("");
}

Schema<FishRequest> fish_request_schema(const ServerConfig& config) {
  using T = FishRequest;
  const std::string cloud_only = "belongs to the hosted service; this server has nothing for it";
  return {
      text("text", &T::text, "what to say").required(),
      integer("chunk_length", &T::chunk_length, {100, 1000}, "longest utterance in bytes").otherwise("200"),
      choice("format", &T::format, audio::format_names(),
             "16-bit mono; opus is Ogg Opus, aac is ADTS, ulaw and alaw are G.711 at 8 kHz")
          .otherwise("\"wav\""),  // of requests with Fish Audio's headers: mp3
      choice("latency", &T::latency, {"normal", "balanced"}, "no effect: sound leaves as soon as it is made")
          .otherwise("\"normal\""),
      references_field(config.max_references),
      clip_field(config.max_references),
      clip_words_field(config.max_references),
      reference_id_field(),
      seed_field(),
      choice("use_memory_cache", &T::use_memory_cache, {"on", "off"},
             "no effect: encoded clips are kept by their content")
          .otherwise("\"off\""),
      boolean("normalize", &T::normalize, "false: the text as it stands; true: as the model wants it")
          .otherwise("true"),
      boolean(
          "streaming", &T::streaming,
          "sound as it is made; wav then comes as bare 16-bit samples, as official clients expect. "
          "Requests with the headers of Fish Audio's packages (model, developer-id): true, with mp3 unless "
          "`format` says otherwise, and a wav with its header")
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
      unused<T>("model_id", "string", "the header or the field model chooses"),
      unused<T>("min_chunk_length", "integer", cloud_only),
      unused<T>("early_stop_threshold", "number", cloud_only, Value{1.0}),
      unused<T>("emotion", "string", cloud_only),
      // Ours.
      number("timeout", &T::timeout, {0.001, static_cast<double>(config.max_timeout_s)},
             "seconds that it may wait for the server; default: the server's"),
      integer("top_k", &T::top_k, {0}, "0: no limit; default: the model's own"),
      boolean("special_tokens", &T::special_tokens,
              "spellings like <|im_end|> in the text are control tokens")
          .otherwise("false"),
      text("model", &T::model, "a model of /v1/models; default: that of the header model, else the first"),
      number("speed", &T::speed, {0.25, 4}, "2 is twice as fast, at the same pitch").otherwise("1"),
      boolean("ssml", &T::ssml, "the text is SSML: speak, p, s, break, say-as, sub, phoneme, prosody, voice")
          .otherwise("false"),
      text("language", &T::language,
           "of the text, of models that speak phonemes: a, en-us, en-gb, es, fr-fr, hi, it, pt-br; default: "
           "the voice's"),
  };
}

SpeechRequest speech_request(const Services& services, Engine& engine, const FishRequest& body) {
  SpeechRequest request;
  request.text = body.text;
  request.voice = services.voice_names.voice_for(engine, body.reference_id);
  std::vector<ReferenceClip> references = references_of(body);
  for (size_t i = 0; i < body.reference_ids.size(); ++i)
    request.voices.push_back({static_cast<int>(i), body.reference_ids[i]});
  request.voices = voices_for(services, engine, std::move(request.voices));
  if (body.reference_id.empty() && body.reference_ids.empty()) request.references = std::move(references);
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
                        .bare_wav = body.bare_wav};
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
