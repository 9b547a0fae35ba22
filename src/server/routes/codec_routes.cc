// /v1/vqgan: sound to codes and back (as fish-speech's server has it).
#include <algorithm>
#include <chrono>
#include <memory>

#include "audio/clip.h"
#include "base/f16.h"
#include "server/routes/gone_signal.h"
#include "server/routes/packed_answer.h"
#include "server/routes/request_body.h"
#include "server/routes/services.h"

namespace shoal::server {
namespace {

using Clock = std::chrono::steady_clock;

// What one request may bring.
struct Limits {
  int64_t clips = 0;
  double clip_s = 0, all_s = 0;

  explicit Limits(const ServerConfig& config)
      : clips(config.max_batch_items),
        clip_s(config.max_reference_s),
        all_s(clip_s * config.max_references) {}

  // Counts one clip more. Throws BodyError(too_large).
  void add(double seconds, const std::string& where) {
    if (seconds > clip_s)
      throw BodyError(ErrorCode::too_large, where,
                      concat("lasts ", seconds, " s, at most ", clip_s, " s are accepted"));
    if ((sum_s_ += seconds) > all_s)
      throw BodyError(
          ErrorCode::too_large, where,
          concat("with it the request brings ", sum_s_, " s of sound, at most ", all_s, " s are accepted"));
  }
  double left_s() const { return std::min(clip_s, all_s - sum_s_); }

 private:
  double sum_s_ = 0;
};

using Clips = std::vector<std::string>;  // files

// A field whose items are not objects, which the schema has no reader for.
template <typename T>
Field<T> array_field(std::string name, FieldDoc item, std::string help, int64_t max_items,
                     void (*read)(const Value::Array& items, const std::string& where, T& into)) {
  FieldDoc doc{.name = std::move(name), .type = "array", .help = std::move(help)};
  doc.max_length = max_items;
  doc.item = {std::move(item)};
  return {std::move(doc), [read, max_items](const Value& value, const std::string& where, T& into) {
            read(read_array(value, where, max_items), where, into);
          }};
}

Schema<Clips> encode_schema(const ServerConfig& config) {
  const auto read = [](const Value::Array& items, const std::string& where, Clips& into) {
    for (size_t i = 0; i < items.size(); ++i) into.push_back(read_bytes(items[i], item_path(where, i)));
  };
  FieldDoc clip{.name = "clip", .type = "string", .help = "A file.", .required = true, .format = "byte"};
  return {array_field<Clips>("audios", std::move(clip), "Clips: wav, flac, ogg, mp3 or aiff files.",
                             Limits(config).clips, read)
              .required()};
}

// Decodes every clip before any is encoded: a request that will be refused causes no encoding.
std::shared_ptr<const Clips> read_clips(const ServerConfig& config, const Request& request) {
  auto clips = std::make_shared<Clips>(encode_schema(config).read(body_of(request)));
  Limits limits(config);
  for (size_t i = 0; i < clips->size(); ++i) {
    const std::string where = item_path("audios", i);
    const audio::Clip clip =
        audio::decode_clip(std::as_bytes(std::span((*clips)[i])), where, {.max_seconds = limits.left_s()});
    limits.add(clip.seconds(), where);
  }
  return clips;
}

// [codebooks][frames], as the official server writes them.
Value by_codebook(const EncodedClip& clip) {
  Value::Array rows;
  for (int book = 0; book < clip.codebooks; ++book) {
    Value::Array row;
    for (int64_t frame = 0; frame < clip.frames; ++frame)
      row.push_back({int64_t{clip.codes[static_cast<size_t>(frame * clip.codebooks + book)]}});
    rows.push_back({std::move(row)});
  }
  return {std::move(rows)};
}

Value object_of(std::string name, Value::Array items) {
  Value::Object object;
  object.emplace_back(std::move(name), Value{std::move(items)});
  return {std::move(object)};
}

// The model that the query names, else the first with a codec.
Engine& codec_of(const Services& services, const Request& request) {
  return *services.models.with_references(request.parameter("model").value_or("")).engine;
}

// Requests cannot set a timeout here. Counted from their arrival.
Clock::time_point deadline_of(const Services& services) {
  return Clock::now() + std::chrono::seconds(services.config.max_timeout_s);
}

Task<> encode(Services& services, Exchange& exchange) {
  const Clock::time_point deadline = deadline_of(services);
  const GoneSignal gone(exchange);
  const Request& request = exchange.request();
  Engine& engine = codec_of(services, request);
  const std::shared_ptr<void> held = engine.hold();
  const auto clips = co_await services.workers.run(
      exchange.executor(), [&services, &request] { return read_clips(services.config, request); });
  Value::Array tokens;
  for (size_t i = 0; i < clips->size(); ++i) {
    check_not_gone(gone.token());
    auto work = [&engine, clips, i, deadline, left = gone.token()] {
      check_not_gone(left);  // while it waited for its turn
      check_in_time(deadline);
      return by_codebook(engine.encode((*clips)[i]));
    };
    Value codes = co_await services.workers.run_in_turn(exchange.executor(), std::move(work));
    tokens.push_back(std::move(codes));
  }
  co_await exchange.respond(packed_response(request, object_of("tokens", std::move(tokens))));
}

using Codes = std::vector<int32_t>;  // [frames, codebooks]

// A code within its codebook. The path is only built for a refused code: there may be a million codes.
int32_t read_code(const Value& value, int entries, const std::string& where, size_t book, size_t frame) {
  const int64_t* code = value.as<int64_t>();
  if (code && *code >= 0 && *code < entries) return static_cast<int32_t>(*code);
  return static_cast<int32_t>(
      read_integer(value, item_path(item_path(where, book), frame), {0, entries - 1.0}));
}

Codes read_codes(const Value& value, const CodecShape& shape, const std::string& where) {
  const Value::Array& rows = read_array(value, where, -1);
  const auto books = static_cast<size_t>(shape.codebooks);
  if (rows.size() != books)
    throw BodyError(ErrorCode::invalid_argument, where,
                    concat("expected ", books, " rows of codes, one for each codebook, got ", rows.size()));
  const size_t frames = read_array(rows[0], item_path(where, 0), -1).size();
  if (frames == 0)
    throw BodyError(ErrorCode::invalid_argument, where, "expected at least one frame, got none");
  Codes codes(frames * books);
  for (size_t book = 0; book < books; ++book) {
    const Value::Array& row = read_array(rows[book], item_path(where, book), -1);
    if (row.size() != frames)
      throw BodyError(ErrorCode::invalid_argument, item_path(where, book),
                      concat("expected ", frames, " codes, as many as in the first row, got ", row.size()));
    const int entries = book == 0 ? shape.semantic_entries : shape.residual_entries;
    for (size_t frame = 0; frame < frames; ++frame)
      codes[frame * books + book] = read_code(row[frame], entries, where, book, frame);
  }
  return codes;
}

struct Tokens {
  const Value::Array* items = nullptr;  // of the body
};

Schema<Tokens> decode_schema(const ServerConfig& config) {
  const auto keep = [](const Value::Array& items, const std::string&, Tokens& into) { into.items = &items; };
  const FieldDoc code{.name = "code", .type = "integer", .help = "A code.", .required = true, .minimum = 0};
  const FieldDoc row{
      .name = "row", .type = "array", .help = "Of a codebook.", .required = true, .item = {code}};
  const FieldDoc clip{.name = "clip", .type = "array", .help = "Of a clip.", .required = true, .item = {row}};
  return {array_field<Tokens>("tokens", clip, "Codes of clips, each [codebooks][frames].",
                              Limits(config).clips, keep)
              .required()};
}

std::shared_ptr<const std::vector<Codes>> read_tokens(Services& services, const Engine& engine,
                                                      const Request& request) {
  const CodecShape shape = engine.codec_shape();
  const Value body = body_of(request);
  const Tokens tokens = decode_schema(services.config).read(body);
  Limits limits(services.config);
  auto clips = std::make_shared<std::vector<Codes>>();
  for (size_t i = 0; i < tokens.items->size(); ++i) {
    const std::string where = item_path("tokens", i);
    clips->push_back(read_codes((*tokens.items)[i], shape, where));
    const auto frames = static_cast<double>(clips->back().size()) / shape.codebooks;
    limits.add(frames * shape.samples_per_frame / engine.sample_rate_hz(), where);
  }
  return clips;
}

// Half floats, little-endian.
std::string half_bytes(const std::vector<float>& samples) {
  std::string bytes;
  bytes.reserve(2 * samples.size());
  for (const float sample : samples) {
    const F16 half = float_to_f16(sample);
    bytes.push_back(static_cast<char>(half & 0xFF));
    bytes.push_back(static_cast<char>(half >> 8));
  }
  return bytes;
}

// Writes {"audios": [...]} with one clip in memory at a time; the items come from write_json and
// write_msgpack.
std::string opening(bool json, size_t clips) {
  if (json) return "{\"audios\":[";
  std::string text = write_msgpack(object_of("audios", Value::Array(clips)));
  text.resize(text.size() - clips);  // every null of that array is a byte
  return text;
}

std::string item(bool json, size_t index, std::string bytes) {
  const Value value{Bytes{std::move(bytes)}};
  if (!json) return write_msgpack(value);
  return (index > 0 ? "," : "") + write_json(value);
}

Task<> decode(Services& services, Exchange& exchange) {
  const Clock::time_point deadline = deadline_of(services);
  const GoneSignal gone(exchange);
  const Request& request = exchange.request();
  Engine& engine = codec_of(services, request);
  const std::shared_ptr<void> held = engine.hold();
  const auto clips = co_await services.workers.run(exchange.executor(),
                                                   [&] { return read_tokens(services, engine, request); });
  const bool json = wants_json(request);
  Response head{.content_type = json ? "application/json" : "application/msgpack"};
  head.body = opening(json, clips->size());
  for (size_t i = 0; i < clips->size(); ++i) {
    check_not_gone(gone.token());
    auto work = [&engine, clips, i, json, deadline, left = gone.token()] {
      check_not_gone(left);
      check_in_time(deadline);
      return item(json, i, half_bytes(engine.decode((*clips)[i])));
    };
    std::string bytes = co_await services.workers.run_in_turn(exchange.executor(), std::move(work));
    if (exchange.begun()) {
      co_await exchange.write(bytes);
    } else {
      Response first = head;
      first.body += bytes;
      co_await exchange.begin(std::move(first));
    }
  }
  if (!exchange.begun()) co_await exchange.begin(std::move(head));
  if (json) co_await exchange.write("]}");
  co_await exchange.end();
}

Route route(std::string path, RouteDoc doc, std::function<Task<>(Services&, Exchange&)> handle) {
  doc.body_types = every_body_type();
  doc.answer_types = packed_types();
  doc.query = {
      format_parameter(),
      {.name = "model", .type = "string", .help = "a model of /v1/models; default: the first with a codec"}};
  return {.method = "POST",
          .path = std::move(path),
          .errors = ErrorStyle::fish,
          .body = BodySize::large,
          .doc = std::move(doc),
          .handle = std::move(handle),
          .takes_slot = true};
}

}  // namespace

std::vector<Route> codec_routes(const ServerConfig& config) {
  return {
      route("/v1/vqgan/encode",
            {.summary = "Codes of clips: {tokens}, for each clip [codebooks][frames].",
             .body = encode_schema(config).docs()},
            encode),
      route("/v1/vqgan/decode",
            {.summary =
                 "The sound of codes: {audios}, each 16-bit little-endian floats, mono, at the model's rate.",
             .body = decode_schema(config).docs()},
            decode)};
}

}  // namespace shoal::server
