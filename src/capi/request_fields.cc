#include "capi/request_fields.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <type_traits>
#include <variant>

#include "base/nearest.h"
#include "base/printable.h"
#include "settings/value.h"

namespace shoal::capi {
namespace {

using R = SpeechRequest;
using settings::Type;

using RequestMember =
    std::variant<std::string R::*, bool R::*, std::optional<bool> R::*, int R::*, std::optional<int> R::*,
                 int64_t R::*, std::optional<uint64_t> R::*, float R::*, std::optional<float> R::*,
                 double R::*, std::chrono::milliseconds R::*, Delivery R::*, std::vector<SpeakerVoice> R::*,
                 bool Quirks::*>;

struct RequestField {
  std::string_view name;
  RequestMember member;
  std::string_view help;
};

constexpr RequestField kRequestFields[] = {
    {"text", &R::text, "what to say, at most 256 KiB"},
    {"voice", &R::voice, "a named voice, or a mix of a model's own voices; empty: the model's own choice"},
    {"voices", &R::voices, "the voice of each speaker of the text, of an S2 model: \"0=clara,1=hugo\""},
    {"seed", &R::seed, "same seed, same sound; drawn without one"},
    {"temperature", &R::temperature, "0 to 2"},
    {"top_p", &R::top_p, "0 to 1; 0 is greedy"},
    {"top_k", &R::top_k, "keep only the likeliest; 0: no limit"},
    {"repetition_penalty", &R::repetition_penalty, "above 0, at most 2"},
    {"max_new_tokens", &R::max_new_tokens, "most frames of one utterance; 0: up to the context limit"},
    {"chunk_length", &R::chunk_length, "longest utterance in bytes, 50 to 1000; 0: never split"},
    {"normalise", &R::normalise, "speak English numbers, dates, money as words"},
    {"special_tokens", &R::special_tokens, "spellings like <|im_end|> are control tokens"},
    {"speed", &R::speed, "0.25 to 4: 2 is twice as fast, at the same pitch"},
    {"volume", &R::volume, "0 to 10: factor of the samples; clipped beyond full scale"},
    {"phonemes", &R::phonemes, "instead of the text, in the model's alphabet"},
    {"language", &R::language, "of the text: en-us, en-gb, ...; empty: the voice's"},
    {"strict_phonemes", &R::strict_phonemes, "phonemes that the model lacks are an error, not a warning"},
    {"trim_joins", &R::trim_joins, "cut long silence between the chunks of a text"},
    {"strict", &R::strict, "fields that the model has no use for are an error, not a warning"},
    {"delivery", &R::delivery, "streaming: pieces as soon as they can be heard; whole: large pieces"},
    {"timeout_ms", &R::timeout, "for the whole request; 0: request_timeout_s of the engine"},
    {"client", &R::client, "whose request it is: clients share the engine evenly"},
    {"penalise_window_semantics", &Quirks::penalise_window_semantics,
     "penalise the semantic tokens of the last 16 frames (official: one frame, 16 back)"},
    {"check_first_frame_end", &Quirks::check_first_frame_end,
     "let the first frame end an utterance (official: ignored)"},
    {"keep_last_frame_without_end", &Quirks::keep_last_frame_without_end,
     "keep the last frame when the length ran out (official: dropped)"},
};

template <typename Member>
auto& member_of(SpeechRequest& request, Member member) {
  if constexpr (std::is_same_v<Member, bool Quirks::*>)
    return (request.quirks.*member);
  else
    return request.*member;
}

template <typename T>
struct unwrapped {
  using type = T;
};
template <typename T>
struct unwrapped<std::optional<T>> {
  using type = T;
};

template <typename T>
constexpr Type type_of() {
  if (std::is_same_v<T, bool>) return Type::boolean;
  if (std::is_floating_point_v<T>) return Type::number;
  if (std::is_integral_v<T> || std::is_same_v<T, std::chrono::milliseconds>) return Type::integer;
  return Type::text;
}

uint64_t parse_seed(std::string_view text) {
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (text.empty() || end != text.data() + text.size() || error != std::errc{})
    fail(ErrorCode::invalid_argument, "expected an integer from 0 to 18446744073709551615, got \"",
         printable(text), "\"");
  return seed;
}

int parse_int(std::string_view text) {
  const auto value = std::get<int64_t>(settings::parse_value(Type::integer, text, "an integer of 32 bits"));
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
    fail(ErrorCode::invalid_argument, "expected an integer of 32 bits, got ", value);
  return static_cast<int>(value);
}

Delivery parse_delivery(std::string_view text) {
  if (text == "streaming") return Delivery::streaming;
  if (text == "whole") return Delivery::whole;
  fail(ErrorCode::invalid_argument, "expected streaming or whole, got \"", printable(text), "\"");
}

template <typename T>
T parse_as(std::string_view text) {
  if constexpr (std::is_same_v<T, uint64_t>) return parse_seed(text);
  if constexpr (std::is_same_v<T, int>) return parse_int(text);
  if constexpr (std::is_same_v<T, Delivery>) return parse_delivery(text);
  if constexpr (std::is_same_v<T, std::vector<SpeakerVoice>>) return parse_speaker_voices(text);
  if constexpr (std::is_same_v<T, std::string>) return std::string(text);
  if constexpr (std::is_same_v<T, bool>) return std::get<bool>(settings::parse_value(Type::boolean, text));
  if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, std::chrono::milliseconds>)
    return T{std::get<int64_t>(settings::parse_value(Type::integer, text, "an integer of 64 bits"))};
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(std::get<double>(settings::parse_value(Type::number, text, "a number")));
}

std::string default_text(const std::string& value) { return value; }
std::string default_text(bool value) { return value ? "true" : "false"; }
std::string default_text(std::chrono::milliseconds value) { return concat(value.count()); }
std::string default_text(const std::vector<SpeakerVoice>&) { return ""; }
std::string default_text(Delivery value) { return value == Delivery::whole ? "whole" : "streaming"; }
template <typename T>
  requires std::is_arithmetic_v<T>
std::string default_text(T value) {
  return concat(value);
}

template <typename T>
server::Value default_json(const T& value) {
  return {default_text(value)};
}
template <typename T>
server::Value default_json(const std::optional<T>&) {
  return {};  // the model's own
}

const RequestField& field_called(std::string_view name) {
  const auto* field = std::ranges::find(kRequestFields, name, &RequestField::name);
  if (field != std::end(kRequestFields)) return *field;
  std::vector<std::string> known;
  for (const RequestField& each : kRequestFields) known.emplace_back(each.name);
  fail(ErrorCode::invalid_argument, "requests have no \"", printable(name), "\"; did you mean \"",
       nearest_name(name, known), "\"?");
}

server::Value field_json(const RequestField& field) {
  SpeechRequest defaults;
  const auto describe = [&](auto member) -> server::Value {
    const auto& value = member_of(defaults, member);
    using T = std::remove_cvref_t<decltype(value)>;
    const Type type = type_of<typename unwrapped<T>::type>();
    return {server::Value::Object{{"name", {std::string(field.name)}},
                                  {"type", {std::string(settings::name_of(type))}},
                                  {"default", default_json(value)},
                                  {"help", {std::string(field.help)}}}};
  };
  return std::visit(describe, field.member);
}

}  // namespace

void set_field(SpeechRequest& request, std::string_view name, const char* text) {
  const RequestField& field = field_called(name);
  const auto set = [&](auto member) {
    auto& value = member_of(request, member);
    using T = typename unwrapped<std::remove_cvref_t<decltype(value)>>::type;
    if (text) {
      value = parse_as<T>(text);
    } else {
      SpeechRequest defaults;
      value = member_of(defaults, member);
    }
  };
  try {
    std::visit(set, field.member);
  } catch (const Error& error) {
    fail(error.code(), name, ": ", error.message());
  }
}

server::Value fields_json() {
  server::Value::Array fields;
  for (const RequestField& field : kRequestFields) fields.push_back(field_json(field));
  return {std::move(fields)};
}

}  // namespace shoal::capi
