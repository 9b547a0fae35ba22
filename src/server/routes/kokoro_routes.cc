// What Kokoro-FastAPI has besides OpenAI's API: phonemes in and out, captions, mixed voices as a file.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "server/routes/gone_signal.h"
#include "server/routes/openai_speech.h"
#include "server/routes/request_body.h"
#include "server/routes/speech_fields.h"
#include "server/routes/speech_warnings.h"
#include "weights/torch_writer.h"

namespace shoal::server {
namespace {

constexpr int64_t kMostVoices = 64;                       // of a mix
constexpr int64_t kVoiceRows = 510, kVoiceColumns = 256;  // of a published pack

// The named model, or else the first one that supports the route.
const ServedModel& model_for(const Models& models, const std::string& name, bool ModelTraits::* ability) {
  const ServedModel* model = name.empty() ? models.find_with(ability) : &models.named(name);
  if (!model) throw BodyError(ErrorCode::unsupported, "model", "no Kokoro model is loaded here");
  return *model;
}

struct PhonemizeBody {
  std::string text, language, model;
  std::optional<bool> normalize;
};

const Schema<PhonemizeBody>& phonemize_schema() {
  using T = PhonemizeBody;
  static const Schema<T> schema = {
      text("text", &T::text, "what would be said").required(),
      text("language", &T::language,
           "a, b, e, f, h, i, p or en-us, en-gb, es, fr-fr, hi, it, pt-br; default: the server's, else a"),
      text("model", &T::model, "a model of /v1/models; default: the first Kokoro model"),
      boolean("normalize", &T::normalize, "speak English numbers, dates, money as words").otherwise("true")};
  return schema;
}

// [pause:1.5s], as a text writes it.
std::string pause_of(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "[pause:%gs]", seconds);
  return text;
}

Response phonemized(const Phonemized& all) {
  std::string phonemes;
  Value::Array tokens;
  for (const PhonemeChunk& chunk : all.chunks) {
    const bool line_begins = !phonemes.empty() && phonemes.back() != ']' && !chunk.phonemes.empty();
    phonemes += (line_begins ? "\n" : "") + chunk.phonemes;
    if (chunk.pause_after_s > 0) phonemes += pause_of(chunk.pause_after_s);
    for (const int32_t id : chunk.ids) tokens.push_back({int64_t{id}});
  }
  Value::Object members{{"phonemes", {std::move(phonemes)}}, {"tokens", {std::move(tokens)}}};
  if (!all.warnings.empty()) members.emplace_back("warnings", warnings_value(all.warnings));
  return {.content_type = "application/json", .body = write_json({std::move(members)}), .headers = {}};
}

Task<> phonemize(Services& services, Exchange& exchange) {
  const GoneSignal gone(exchange);
  const PhonemizeBody body = co_await read_request(services, exchange, phonemize_schema(), json_type());
  Engine& engine = *model_for(services.models, body.model, &ModelTraits::phonemes).engine;
  SpeechRequest limits;
  limits.text = body.text;
  const Request& request = exchange.request();
  check_and_complete(services, engine, request, limits);
  const auto deadline = std::chrono::steady_clock::now() + usual_timeout(services, engine);
  const auto work = [&engine, &body, &request, deadline, left = gone.token()] {
    check_not_gone(left);  // while it waited for its turn
    check_in_time(deadline);
    try {
      return engine.phonemize(body.text, body.language, body.normalize.value_or(true));
    } catch (const Error& error) {
      hide_paths(engine, request, error);
      throw;
    }
  };
  // A long text takes seconds.
  const Phonemized all = co_await services.workers.run_in_turn(exchange.executor(), work);
  Response response = phonemized(all);
  co_await exchange.respond(std::move(response));
}

struct PhonemeSpeech {
  std::string phonemes, voice, model;
  std::string response_format = "wav";
  double speed = 1;
  std::optional<uint64_t> seed;
  std::optional<double> timeout;
  bool stream = true;
  bool strict_phonemes = false;
  int sample_rate = 0;
};

Schema<PhonemeSpeech> phoneme_speech_schema(const ServerConfig& config) {
  using T = PhonemeSpeech;
  return {
      text("phonemes", &T::phonemes, "in the model's alphabet; lines and [pause:1s] as in a text").required(),
      text("voice", &T::voice, "a voice or mix of /v1/audio/voices; default: the model's own"),
      text("model", &T::model, "a model of /v1/models; default: the first Kokoro model"),
      choice("response_format", &T::response_format, audio::format_names(),
             "pcm is 16-bit little-endian mono; ulaw and alaw are G.711 at 8 kHz")
          .otherwise("\"wav\""),
      integer("sample_rate", &T::sample_rate, kSampleRatesHz,
              "Hz of the answer; default: 8000 for ulaw and alaw, else the model's"),
      number("speed", &T::speed, {0.25, 4}, "2 is twice as fast").otherwise("1"),
      integer("seed", &T::seed, {0}, "same seed, same sound; drawn without one"),
      number("timeout", &T::timeout, {0.001, static_cast<double>(config.max_timeout_s)},
             "seconds until the last sample; default: the server's"),
      boolean("stream", &T::stream, "false: one body with its length and a complete file header")
          .otherwise("true"),
      boolean("strict_phonemes", &T::strict_phonemes,
              "phonemes that the model lacks are an error instead of a warning")
          .otherwise("false")};
}

SpeechRequest request_of(const Services& services, Engine& engine, const PhonemeSpeech& body) {
  if (body.phonemes.empty())
    throw BodyError(ErrorCode::invalid_argument, "phonemes", "expected at least one, got nothing");
  SpeechRequest request;
  request.phonemes = body.phonemes;
  request.voice = services.voice_names.voice_for(engine, body.voice);
  request.speed = body.speed;
  request.seed = body.seed;
  request.strict_phonemes = body.strict_phonemes;
  if (body.timeout) request.timeout = as_timeout(*body.timeout);
  return request;
}

Task<> speak_phonemes(Services& services, Exchange& exchange,
                      std::shared_ptr<const Schema<PhonemeSpeech>> schema) {
  const PhonemeSpeech body = co_await read_request(services, exchange, *schema, json_type());
  Engine& engine = *model_for(services.models, body.model, &ModelTraits::phonemes).engine;
  SpeechRequest request = request_of(services, engine, body);
  AnswerOptions options{.format = audio::parse_format(body.response_format).value(),
                        .sample_rate_hz = body.sample_rate,
                        .streaming = body.stream};
  const std::string voice = request.voice;
  try {
    co_await answer_with_speech(services, engine, exchange, std::move(request), std::move(options));
  } catch (const Error& error) {
    rethrow_for_openai(error, voice);
  }
}

Task<> speak_with_captions(Services& services, Exchange& exchange,
                           std::shared_ptr<const Schema<OpenAiSpeech>> schema) {
  const OpenAiSpeech body = co_await read_request(services, exchange, *schema, json_type());
  Engine& engine = *model_of(services.models, body).engine;
  if (body.return_timestamps && !engine.traits().phonemes)
    throw BodyError(ErrorCode::unsupported, "return_timestamps",
                    "this model knows no times of words; ask for false, or for a Kokoro model");
  SpeechRequest request = speech_request(services, engine, body);
  AnswerOptions options = answer_options(body);
  const std::string voice = request.voice;
  try {
    take_ssml(engine, body, request, options);
    co_await answer_with_captions(services, engine, exchange, std::move(request), std::move(options),
                                  body.return_timestamps);
  } catch (const Error& error) {
    rethrow_for_openai(error, voice);
  }
}

struct CombineBody {
  std::string voices, model;
};

// A mix in one text, or names, which have equal shares.
std::string read_mix(const Value& value, const std::string& where) {
  if (!value.as<Value::Array>()) return read_text(value, where);
  const Value::Array& names = read_array(value, where, kMostVoices);
  std::string mix;
  for (size_t i = 0; i < names.size(); ++i)
    mix += (i > 0 ? "+" : "") + read_text(names[i], item_path(where, i));
  return mix;
}

FieldDoc list_of_voices() {
  const FieldDoc name{.name = "name", .type = "string", .help = "a voice or mix", .required = true};
  return {.name = "voices",
          .type = "array",
          .help = "names of voices, which have equal shares",
          .required = true,
          .max_length = kMostVoices,
          .item = {name}};
}

FieldDoc mix_of_voices() {
  return {.name = "voices",
          .type = "string",
          .help = "a mix of two voices at least, af_bella(2)+af_sky(1)",
          .required = true};
}

const Schema<CombineBody>& combine_schema() {
  FieldDoc voices = mix_of_voices();
  voices.forms = {list_of_voices()};
  static const Schema<CombineBody> schema = {
      Field<CombineBody>{std::move(voices), [](const Value& value, const std::string& where,
                                               CombineBody& into) { into.voices = read_mix(value, where); }},
      text("model", &CombineBody::model, "a model of /v1/models; default: the first Kokoro model")};
  return schema;
}

// Kokoro-FastAPI's clients send just the mix or the list.
CombineBody read_combine(const Request& request) {
  require_body_type(request, json_type());
  const Value value = read_json(request.body);
  if (value.as<Value::Object>()) return combine_schema().read(value);
  return {.voices = read_mix(value, ""), .model = {}};
}

// Whether it is the name of one voice, with or without a weight.
bool is_one_voice(const Voices& voices, const std::string& mix) {
  const std::string name = mix.ends_with(')') ? mix.substr(0, mix.rfind('(')) : mix;
  return std::ranges::count(voices.list(), name, &VoiceInfo::name) > 0;
}

std::string file_name_of(std::string mix) {
  constexpr size_t kLongest = 120;
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("_-+().").find(c) != std::string_view::npos;
  };
  std::ranges::replace_if(mix, [&](char c) { return !plain(c); }, '_');
  return mix.substr(0, kLongest) + ".pt";
}

std::vector<float> styles_of(const Services& services, Engine& engine, const Request& request,
                             const std::string& mix) {
  try {
    return engine.voice_styles(mix);
  } catch (const Error& error) {
    tell_unknown_voice(services, engine, error);
    hide_paths(engine, request, error);
    throw;
  }
}

Response combine(Services& services, const Request& request) {
  const CombineBody body = read_combine(request);
  Engine& engine = *model_for(services.models, body.model, &ModelTraits::own_voices).engine;
  if (body.voices.empty() || is_one_voice(engine.voices(), body.voices))
    throw BodyError(ErrorCode::invalid_argument, "voices",
                    "expected at least two, as in af_bella+af_sky, got " +
                        std::string(body.voices.empty() ? "none" : "one"));
  std::vector<float> styles;
  try {
    styles = styles_of(services, engine, request, body.voices);
  } catch (const Error& error) {
    rethrow_for_openai(error, body.voices);
  }
  CHECK(std::ssize(styles) == kVoiceRows * kVoiceColumns, "a voice of ", styles.size(), " values");
  Response response{.content_type = "application/octet-stream",
                    .body = weights::write_torch_tensor(styles, {kVoiceRows, 1, kVoiceColumns}),
                    .headers = {}};
  response.headers.add("Content-Disposition", "attachment; filename=\"" + file_name_of(body.voices) + "\"");
  return response;
}

Task<> answer_combined(Services& services, Exchange& exchange) {
  const auto work = [&services, &exchange] { return combine(services, exchange.request()); };
  Response response = co_await services.workers.run(exchange.executor(), work);
  co_await exchange.respond(std::move(response));
}

Route dev_route(std::string path, std::string summary, std::vector<FieldDoc> fields,
                std::vector<std::string> answer_types) {
  return {.method = "POST",
          .path = std::move(path),
          .errors = ErrorStyle::kokoro,
          .body = BodySize::small,
          .doc = {.summary = std::move(summary),
                  .body = std::move(fields),
                  .body_types = json_type(),
                  .answer_types = std::move(answer_types)}};
}

}  // namespace

std::vector<Route> kokoro_routes(const ServerConfig& config) {
  std::vector<Route> routes;
  routes.push_back(dev_route("/dev/phonemize", "How a text would be spoken: {phonemes, tokens}",
                             phonemize_schema().docs(), {"application/json"}));
  routes.back().handle = phonemize;
  routes.back().takes_slot = true;

  const auto phonemes = std::make_shared<const Schema<PhonemeSpeech>>(phoneme_speech_schema(config));
  routes.push_back(
      dev_route("/dev/generate_from_phonemes", "Speaks phonemes", phonemes->docs(), audio::mime_types()));
  routes.back().handle = [phonemes](Services& services, Exchange& exchange) {
    return speak_phonemes(services, exchange, phonemes);
  };
  routes.back().takes_slot = true;

  const auto captioned = std::make_shared<const Schema<OpenAiSpeech>>(captioned_speech_schema(config));
  routes.push_back(
      dev_route("/dev/captioned_speech",
                "Speaks a text and says when each word is heard: {audio, audio_format, timestamps}, "
                "a line for each piece, or with \"stream\": false one object",
                captioned->docs(), {"application/json", "application/x-ndjson"}));
  routes.back().body = BodySize::large;
  routes.back().handle = [captioned](Services& services, Exchange& exchange) {
    return speak_with_captions(services, exchange, captioned);
  };
  routes.back().takes_slot = true;

  routes.push_back(dev_route("/v1/audio/voices/combine", "A mix of voices as a file that torch.load reads",
                             combine_schema().docs(), {"application/octet-stream"}));
  routes.back().doc.body_forms = {mix_of_voices(), list_of_voices()};
  routes.back().errors = ErrorStyle::openai;
  routes.back().handle = answer_combined;
  routes.back().takes_slot = true;
  return routes;
}

}  // namespace shoal::server
