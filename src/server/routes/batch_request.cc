#include "server/routes/batch_request.h"

#include "server/routes/speech_answer.h"
#include "server/routes/speech_fields.h"

namespace shoal::server {
namespace {

// How to speak: for all items, and for a single item where it has its own values. The defaults are those of
// /v1/tts's ServeTTSRequest.
struct Manner {
  int64_t max_new_tokens = 1024;
  float temperature = 0.8f, top_p = 0.8f, repetition_penalty = 1.1f;
  int chunk_length = 200;
  double speed = 1;
  float volume = 1;
  std::string language;
};

struct ItemBody : Manner {
  std::string text, voice, reference_audio, reference_text;
  std::vector<SpeakerVoice> voices;
  std::optional<uint64_t> seed;
};

struct BatchBody : Manner {
  BatchBody() = default;  // no aggregate: g++ 12 takes the text within its base for uninitialised
  const Value::Array* items = nullptr;  // of the body: each is read by itself, so that it fails by itself
  std::optional<uint64_t> seed;
  std::string format = "wav", model;
  int sample_rate = 0;
  std::optional<double> timeout;
};

constexpr double kMostFrames = 1 << 20;

template <typename T>
Field<T> seed_field(std::optional<uint64_t> T::* member, std::string help) {
  return integer("seed", member, {0}, std::move(help));
}

// Reads the fields of Manner into a T, with its own fields.
template <typename T>
Schema<T> with_manner(std::vector<Field<T>> fields) {
  fields.push_back(integer<T, int64_t>("max_new_tokens", &T::max_new_tokens, {0, kMostFrames},
                                       "Longest utterance in frames; 0: up to the context limit.")
                       .otherwise("1024"));
  fields.push_back(
      number<T, float>("temperature", &T::temperature, {0, 2}, "Sampling temperature.").otherwise("0.8"));
  fields.push_back(number<T, float>("top_p", &T::top_p, {0, 1}, "Share of probability that is sampled from.")
                       .otherwise("0.8"));
  fields.push_back(number<T, float>("repetition_penalty", &T::repetition_penalty, {0.01, 2},
                                    "Penalty of recent codes; 1: none.")
                       .otherwise("1.1"));
  fields.push_back(integer<T, int>("chunk_length", &T::chunk_length, {0, 1000},
                                   "Longest piece of text in bytes, from 50; 0: never split.")
                       .otherwise("200"));
  fields.push_back(number<T, double>("speed", &T::speed, {0.25, 4}, "2 is twice as fast, at the same pitch.")
                       .otherwise("1"));
  fields.push_back(
      number<T, float>("volume", &T::volume, {0, 10}, "Factor of the samples; clipped beyond full scale.")
          .otherwise("1"));
  fields.push_back(text<T, std::string>("language", &T::language,
                                        "Of the text, of models that speak phonemes; absent: the voice's."));
  return Schema<T>(std::move(fields));
}

const Schema<ItemBody>& item_schema() {
  static const Schema<ItemBody> schema = with_manner<ItemBody>(
      {text("text", &ItemBody::text, "What to say.").required(),
       text("voice", &ItemBody::voice, "A voice of /v1/audio/voices; \"default\": the model's own."),
       voices_field(&ItemBody::voices),
       bytes("reference_audio", &ItemBody::reference_audio, "A clip of a voice to follow."),
       text("reference_text", &ItemBody::reference_text, "The words spoken in the clip."),
       seed_field(&ItemBody::seed, "Absent: derived from the batch's seed and the item's place, or drawn.")});
  return schema;
}

Schema<BatchBody> batch_schema(const ServerConfig& config, const std::string& list) {
  FieldDoc items{.name = list, .type = "array", .help = "What to say, each by itself.", .required = true};
  items.max_length = config.max_batch_items;
  items.items = item_schema().docs();
  const auto keep = [most = config.max_batch_items](const Value& value, const std::string& where,
                                                    BatchBody& into) {
    into.items = &read_array(value, where, most);
    if (into.items->empty())
      throw BodyError(ErrorCode::invalid_argument, where, "expected at least one, got none");
  };
  return with_manner<BatchBody>(
      {Field<BatchBody>{std::move(items), keep},
       text("model", &BatchBody::model, "A model of /v1/models; absent: the first."),
       seed_field(&BatchBody::seed, "Each item without a seed of its own gets one derived from this."),
       choice("format", &BatchBody::format, audio::format_names(),
              "Container of the sound; ulaw and alaw are G.711 at 8 kHz.")
           .otherwise("\"wav\""),
       integer("sample_rate", &BatchBody::sample_rate, kSampleRatesHz,
               "Of the sound, in Hz; absent: 8000 for ulaw and alaw, else the model's."),
       number("timeout", &BatchBody::timeout, {0.001, static_cast<double>(config.max_timeout_s)},
              "Seconds until items that have not ended fail. Absent: as long as the server allows.")});
}

// Fields that older batch clients send by default, besides those of single requests.
void forget_usual_of_batches(const Engine& engine, SpeechRequest& request) {
  constexpr float kUsualTemperature = 0.7f;
  constexpr int64_t kUsualMaxNewTokens = 2048;
  forget_usual_sampling(engine, request);
  if (!engine.traits().phonemes) return;
  if (request.temperature == kUsualTemperature) request.temperature.reset();
  if (request.max_new_tokens == kUsualMaxNewTokens) request.max_new_tokens = SpeechRequest().max_new_tokens;
}

SpeechRequest speech_of(const Services& services, Engine& engine, ItemBody& item,
                        std::chrono::milliseconds timeout) {
  if (!item.reference_audio.empty() && item.reference_text.empty())
    fail(ErrorCode::invalid_argument, "reference_text: expected the words of reference_audio, got nothing");
  if (item.reference_audio.empty() && !item.reference_text.empty())
    fail(ErrorCode::invalid_argument,
         "reference_audio: expected the clip that reference_text is spoken in, got nothing");
  SpeechRequest speech;
  speech.text = std::move(item.text);
  speech.voice = services.voice_names.voice_for(engine, item.voice, !item.reference_audio.empty());
  speech.voices = voices_for(services, engine, std::move(item.voices));
  if (!item.reference_audio.empty())
    speech.references.push_back(
        {.audio = std::move(item.reference_audio), .text = std::move(item.reference_text)});
  take_sampling(item, speech);
  forget_usual_of_batches(engine, speech);
  speech.speed = item.speed;
  speech.volume = item.volume;
  speech.language = std::move(item.language);
  speech.timeout = timeout;
  return speech;
}

// Items wait for room, where single requests are refused at once: so is a batch that would begin with it.
void check_queue(const Engine& engine) {
  const Statistics now = engine.statistics();
  const int64_t queued = now.preparing + now.waiting;
  const int max_queue = engine.config().max_queue;
  if (queued >= max_queue)
    fail(ErrorCode::resource_exhausted, "the batch queue is full: ", queued, " requests wait (max_queue ",
         max_queue, "); try again later");
}

}  // namespace

std::vector<FieldDoc> batch_docs(const ServerConfig& config, const std::string& list) {
  return batch_schema(config, list).docs();
}

BatchRequest read_batch(Services& services, const Request& request, const Value& value,
                        const std::string& list) {
  const BatchBody body = batch_schema(services.config, list).read(value);
  Engine& engine = *services.models.named(body.model).engine;
  const int rate_hz = engine.sample_rate_hz();  // throws before clips are decoded if there is no model
  check_queue(engine);
  BatchRequest batch{.engine = &engine};
  batch.format = *audio::parse_format(body.format);
  batch.sample_rate_hz =
      body.sample_rate > 0 ? body.sample_rate : audio::usual_rate_hz(batch.format, rate_hz);
  audio::make_encoder(batch.format, {.sample_rate_hz = batch.sample_rate_hz},
                      [](auto) {});  // throws what no item could be spared
  batch.seed = body.seed;
  batch.timeout = as_timeout(body.timeout.value_or(services.config.max_timeout_s));
  ItemBody defaults;
  static_cast<Manner&>(defaults) = body;
  for (size_t i = 0; i < body.items->size(); ++i) {
    BatchItem& item = batch.items.emplace_back();
    try {
      ItemBody read = item_schema().read_onto(defaults, (*body.items)[i], item_path(list, i));
      item.speech = speech_of(services, engine, read, batch.timeout);
      check_and_complete(services, engine, request, item.speech);
      services.usage.add_characters(request.client, charged_characters(item.speech));
    } catch (const Error& error) {
      item = {.speech = {}, .error = Error(error.code(), error.message())};
    }
  }
  return batch;
}

}  // namespace shoal::server
