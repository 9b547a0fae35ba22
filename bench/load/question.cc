#include "bench/load/question.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "bench/measure/draws.h"

namespace shoal::load {
namespace {

using nlohmann::ordered_json;

struct Route {
  Api api;
  std::string_view name, path;
};
constexpr auto kRoutes = std::to_array<Route>({{Api::openai, "openai", "/v1/audio/speech"},
                                               {Api::fish, "fish", "/v1/tts"},
                                               {Api::batch, "batch", "/v1/tts/batch"},
                                               {Api::live, "live", "/v1/audio/stream"}});

const Route& route_of(Api api) { return *std::ranges::find(kRoutes, api, &Route::api); }

// true, 1.5 and {"a": 1} are JSON; what is not is a text.
ordered_json value_of(const std::string& text) {
  ordered_json value = ordered_json::parse(text, nullptr, false);
  return value.is_discarded() ? ordered_json(text) : value;
}

// Texts come from a file that may hold anything.
std::string dumped(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

void add_seed(ordered_json& body, const Question& question, uint64_t index) {
  if (!question.speech_seed) return;
  const uint64_t seed = static_cast<uint64_t>(*question.speech_seed) + index;  // goes round at the end
  body["seed"] = static_cast<int64_t>(seed);
}

// A name that stands several times has its values in turn.
void add_fields(ordered_json& body, const Question& question, uint64_t index) {
  const auto times = [&](const std::string& name) {
    return static_cast<uint64_t>(
        std::ranges::count(question.fields, name, &std::pair<std::string, std::string>::first));
  };
  std::map<std::string, uint64_t> seen;
  for (const auto& [name, value] : question.fields)
    if (seen[name]++ == index % times(name)) body[name] = value_of(value);
}

void add_named(ordered_json& body, const char* name, const std::string& value) {
  if (!value.empty()) body[name] = value;
}

struct Spoken {
  std::string audio, words;  // in base64; as JSON
};

std::optional<Spoken> reference_of(const References& references, uint64_t index, uint64_t level_begin) {
  if (references.clips.empty()) return std::nullopt;
  const uint64_t number = index % references.clips.size();
  const ReferenceClip& clip = references.clips[number];
  std::optional<uint64_t> newness;
  if (references.freshness != Freshness::none) {
    const uint64_t place = references.freshness == Freshness::request ? index : level_begin;
    newness = bench::draw_bits(references.salt + number, place, bench::Draw::clip);
  }
  return Spoken{clip.base64(newness), dumped(clip.words())};
}

// Into an object that is JSON already: a clip has too many bytes to be searched for what JSON must escape.
void insert_reference(std::string& object, const std::optional<Spoken>& spoken) {
  if (!spoken) return;
  object.pop_back();
  object += concat(R"(,"references":[{"audio":")", spoken->audio, R"(","text":)", spoken->words, "}]}");
}

std::string openai_body(const Question& question, uint64_t index) {
  ordered_json body;
  add_named(body, "model", question.model);
  body["input"] = question.text(index);
  add_named(body, "voice", question.voice(index));
  body["response_format"] = name_of(question.container);
  add_seed(body, question, index);
  add_fields(body, question, index);
  return dumped(body);
}

std::string fish_body(const Question& question, uint64_t index) {
  ordered_json body;
  add_named(body, "model", question.model);
  body["text"] = question.text(index);
  add_named(body, "reference_id", question.voice(index));
  body["format"] = name_of(question.container);
  body["streaming"] = true;
  add_seed(body, question, index);
  add_fields(body, question, index);
  return dumped(body);
}

std::string item_of(const Question& question, uint64_t index, uint64_t level_begin) {
  ordered_json item = {{"text", question.text(index)}};
  add_named(item, "voice", question.voice(index));
  add_seed(item, question, index);
  std::string text = dumped(item);
  if (const auto spoken = reference_of(question.references, index, level_begin)) {
    text.pop_back();
    text += concat(R"(,"reference_audio":")", spoken->audio, R"(","reference_text":)", spoken->words, "}");
  }
  return text;
}

std::string batch_body(const Question& question, const Turn& turn) {
  ordered_json body;
  add_named(body, "model", question.model);
  body["format"] = name_of(question.container);
  add_fields(body, question, turn.index);
  std::string text = dumped(body);
  text.pop_back();
  const auto items = static_cast<uint64_t>(question.items);
  for (uint64_t i = 0; i < items; ++i)
    text += (i == 0 ? R"(,"items":[)" : ",") + item_of(question, turn.index * items + i, turn.level_begin);
  return text + "]}";
}

std::string body_of(const Target& target, const Question& question, const Turn& turn) {
  if (target.api == Api::batch) return batch_body(question, turn);
  std::string body =
      target.api == Api::fish ? fish_body(question, turn.index) : openai_body(question, turn.index);
  insert_reference(body, reference_of(question.references, turn.index, turn.level_begin));
  return body;
}

}  // namespace

std::string_view name_of(Api api) { return route_of(api).name; }
std::string_view name_of(Container container) { return container == Container::pcm ? "pcm" : "wav"; }

Target make_target(std::string_view text, std::string_view api) {
  std::string address(text);
  const bool is_web_socket = text.starts_with("ws://") || text.starts_with("wss://");
  if (is_web_socket) address.replace(0, 2, "http");
  Target target{.url = parse_url(address)};
  std::string& path = target.url.path;
  while (path.ends_with('/')) path.pop_back();
  for (const Route& route : kRoutes)
    if (api == route.name || (api == "auto" && path.ends_with(route.path))) target.api = route.api;
  if (is_web_socket && api == "auto") target.api = Api::live;
  if (is_web_socket && target.api != Api::live)
    fail(ErrorCode::invalid_argument, "url: a WebSocket is the API live, not ", name_of(target.api));
  std::string_view own = route_of(target.api).path;
  if (path.ends_with("/v1")) own.remove_prefix(3);
  if (path.empty() || path.ends_with("/v1")) path += own;
  return target;
}

std::vector<std::string> texts_of(const Question& question, uint64_t index) {
  const auto items = static_cast<uint64_t>(question.items);
  std::vector<std::string> texts;
  for (uint64_t i = 0; i < items; ++i) texts.push_back(question.text(index * items + i));
  return texts;
}

std::string voices_of(const Question& question, uint64_t index) {
  const auto items = static_cast<uint64_t>(question.items);
  std::string names;
  for (uint64_t i = 0; i < std::min<uint64_t>(items, question.voices.size()); ++i)
    names += (i == 0 ? "" : ",") + question.voice(index * items + i);
  return names;
}

HeaderFields header_fields_of(const Question& question) {
  HeaderFields fields;
  if (!question.api_key.empty()) fields.emplace_back("Authorization", "Bearer " + question.api_key);
  fields.insert(fields.end(), question.headers.begin(), question.headers.end());
  return fields;
}

std::string bytes_of(const Target& target, const Question& question, const Turn& turn) {
  const std::string body = body_of(target, question, turn);
  std::string head =
      concat("POST ", target.url.path, " HTTP/1.1\r\nHost: ", target.url.authority(),
             "\r\nUser-Agent: shoal-bench\r\nContent-Type: application/json\r\nContent-Length: ", body.size(),
             "\r\n");
  if (target.api == Api::batch) head += "Accept: application/x-ndjson\r\n";
  for (const auto& [name, value] : header_fields_of(question)) head += concat(name, ": ", value, "\r\n");
  return head + "\r\n" + body;
}

std::vector<std::string> messages_of(const Question& question, const Turn& turn) {
  ordered_json start = {{"type", "start"}, {"format", name_of(question.container)}};
  add_named(start, "model", question.model);
  add_named(start, "voice", question.voice(turn.index));
  add_seed(start, question, turn.index);
  add_fields(start, question, turn.index);
  std::string begin = dumped(start);
  insert_reference(begin, reference_of(question.references, turn.index, turn.level_begin));
  return {begin, dumped({{"type", "text"}, {"text", question.text(turn.index)}}), R"({"type":"end"})"};
}

int64_t characters_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

}  // namespace shoal::load
