#include "settings/table.h"

#include <algorithm>
#include <type_traits>

#include "base/error.h"

namespace shoal::settings {
namespace {

template <typename T>
constexpr bool is_counted = std::is_same_v<T, int> || std::is_same_v<T, int64_t>;

template <typename Config>
const Config& part(const Configs& configs) {
  if constexpr (std::is_same_v<Config, EngineConfig>)
    return configs.engine;
  else
    return configs.server;
}

template <typename Config>
Config& part(Configs& configs) {
  return const_cast<Config&>(part<Config>(std::as_const(configs)));
}

[[noreturn]] void out_of_range(const Row& row, const Value& value) {
  fail(ErrorCode::invalid_argument, row.key, ": expected ", row.range(), ", got ", to_toml(value));
}

// Bounds of integers are below 2^53, so doubles hold them exactly.
void check_value(const Row& row, const Value& value) {
  const auto outside = [&](auto number) {
    return !(number >= static_cast<decltype(number)>(row.allowed.low) &&
             number <= static_cast<decltype(number)>(row.allowed.high));
  };
  if (const auto* integer = std::get_if<int64_t>(&value); integer && outside(*integer))
    out_of_range(row, value);
  if (const auto* number = std::get_if<double>(&value); number && outside(*number)) out_of_range(row, value);
  const auto* text = std::get_if<std::string>(&value);
  if (text && text->find('\0') != std::string::npos)
    fail(ErrorCode::invalid_argument, row.key, ": expected a text without NUL characters");
  if (text && row.allowed.secret && *text == kShownSecret)
    fail(ErrorCode::invalid_argument, row.key, ": expected the key itself; ", kShownSecret,
         " is what stands for it where settings are printed");
}

void check_ranges(const Configs& configs, bool of_server) {
  for (const Row& row : rows())
    if (row.of_server() == of_server) check_value(row, get(row, configs));
}

// Whether a value may not be shown.
bool is_hidden(const Row& row, const Value& value) { return row.allowed.secret && value != Value(""); }

}  // namespace

Type Row::type() const {
  return std::visit(
      []<typename T, typename C>(T C::*) {
        if constexpr (std::is_same_v<T, bool>) return Type::boolean;
        if constexpr (is_counted<T>) return Type::integer;
        if constexpr (std::is_same_v<T, double>) return Type::number;
        return Type::text;
      },
      field);
}

std::string Row::range() const {
  if (type() == Type::boolean) return "";
  if (type() == Type::text) return std::string(allowed.words);
  const auto bound = [&](double value) {
    return type() == Type::integer ? settings::to_toml(static_cast<int64_t>(value))
                                   : settings::to_toml(value);
  };
  return concat(bound(allowed.low), " to ", bound(allowed.high));
}

bool Row::of_server() const {
  return std::visit([]<typename T, typename C>(T C::*) { return std::is_same_v<C, ServerConfig>; }, field);
}

const Row* find_row(std::string_view key) {
  const auto found = std::ranges::find(rows(), key, &Row::key);
  return found == rows().end() ? nullptr : &*found;
}

Value get(const Row& row, const Configs& configs) {
  return std::visit(
      [&]<typename T, typename C>(T C::* field) -> Value {
        const T& value = part<C>(configs).*field;
        if constexpr (std::is_enum_v<T>)
          return std::string(name_of(value));
        else if constexpr (is_counted<T>)
          return static_cast<int64_t>(value);
        else
          return value;
      },
      row.field);
}

void set(const Row& row, const Value& value, Configs& configs) {
  check_value(row, value);
  std::visit(
      [&]<typename T, typename C>(T C::* field) {
        T& into = part<C>(configs).*field;
        if constexpr (std::is_same_v<T, Precision>)
          into = parse_precision(std::get<std::string>(value));
        else if constexpr (std::is_same_v<T, WeightFormat>)
          into = parse_weight_format(std::get<std::string>(value));
        else if constexpr (std::is_same_v<T, KvPrecision>)
          into = parse_kv_precision(std::get<std::string>(value));
        else if constexpr (std::is_same_v<T, CodecWeights>)
          into = parse_codec_weights(std::get<std::string>(value));
        else if constexpr (is_counted<T>)
          into = static_cast<T>(std::get<int64_t>(value));
        else
          into = std::get<T>(value);
      },
      row.field);
}

void check_ranges(const EngineConfig& config) { check_ranges({.engine = config, .server = {}}, false); }
void check_ranges(const ServerConfig& config) { check_ranges({.engine = {}, .server = config}, true); }

std::string shown(const Row& row, const Value& value) {
  return is_hidden(row, value) ? std::string(kShownSecret) : shown(value);
}

std::string to_toml(const Row& row, const Value& value) {
  return to_toml(is_hidden(row, value) ? Value(std::string(kShownSecret)) : value);
}

}  // namespace shoal::settings
