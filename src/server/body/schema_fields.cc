#include "server/body/schema_fields.h"

#include <array>
#include <charconv>

#include "base/base64.h"
#include "base/nearest.h"
#include "base/printable.h"

namespace shoal::server {
namespace {

constexpr size_t kMaxShown = 40;           // characters of a foreign text or name in a message
constexpr double kTwoTo63 = 0x1p63;        // no int64 reaches it
constexpr double kExactIntegers = 0x1p53;  // a double holds every integer up to it

std::string quoted(std::string_view text) { return concat('"', printable(text, kMaxShown), '"'); }

std::string shown_number(double number) {
  std::array<char, 32> digits{};
  const bool whole = std::abs(number) < kExactIntegers && number == std::trunc(number);
  const auto end = whole ? std::to_chars(digits.begin(), digits.end(), static_cast<int64_t>(number)).ptr
                         : std::to_chars(digits.begin(), digits.end(), number).ptr;
  return {digits.begin(), end};
}

// Describes a value, for the end of a sentence.
std::string shown(const Value& value) {
  if (value.is_null()) return "null";
  if (const auto* boolean = value.as<bool>()) return *boolean ? "true" : "false";
  if (const auto* integer = value.as<int64_t>()) return std::to_string(*integer);
  if (const auto* number = value.as<double>()) return shown_number(*number);
  if (const auto* text = value.as<std::string>()) return "the text " + quoted(*text);
  if (const auto* bytes = value.as<Bytes>()) return concat(bytes->data.size(), " bytes");
  if (const auto* array = value.as<Value::Array>()) return concat("an array of ", array->size());
  return "an object";
}

template <typename... Parts>
[[noreturn]] void fail_at(const std::string& where, const Parts&... parts) {
  throw BodyError(ErrorCode::invalid_argument, where, concat(parts...));
}

// A bound that no int64 reaches is not shown: it would help nobody.
std::string limits_of(Range range) {
  const bool low = range.low > -kTwoTo63;
  const bool high = range.high < kTwoTo63;
  if (low && high) return concat(" from ", shown_number(range.low), " to ", shown_number(range.high));
  if (low) return concat(" of at least ", shown_number(range.low));
  if (high) return concat(" of at most ", shown_number(range.high));
  return "";
}

// Of a Buffer as Node writes it in JSON, {"type": "Buffer", "data": [82, 73, ...]}; absent: not one.
std::optional<std::string> from_buffer(const Value& value) {
  const Value* type = value.find("type");
  const Value* data = value.find("data");
  if (!type || !data || *type != Value{std::string("Buffer")} || !data->as<Value::Array>())
    return std::nullopt;
  std::string bytes;
  for (const Value& item : *data->as<Value::Array>()) {
    const auto* byte = item.as<int64_t>();
    if (!byte || *byte < 0 || *byte > 255) return std::nullopt;
    bytes += static_cast<char>(*byte);
  }
  return bytes;
}

template <typename T>
std::optional<T> whole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> number_in(const Value& value) {
  if (const auto* number = value.as<double>()) return *number;
  if (const auto* integer = value.as<int64_t>()) return static_cast<double>(*integer);
  const auto* text = value.as<std::string>();
  return text ? whole<double>(*text) : std::nullopt;
}

// Digits that no int64 holds: as a double they could be rounded into its range.
bool is_too_long_an_integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc::result_out_of_range && end == text.data() + text.size();
}

std::optional<int64_t> integer_in(const Value& value) {
  if (const auto* integer = value.as<int64_t>()) return *integer;
  if (const auto* text = value.as<std::string>()) {
    if (const auto integer = whole<int64_t>(*text)) return integer;
    if (is_too_long_an_integer(*text)) return std::nullopt;
  }
  const auto number = number_in(value);
  const bool fits = number && *number >= -kTwoTo63 && *number < kTwoTo63 && *number == std::trunc(*number);
  return fits ? std::optional(static_cast<int64_t>(*number)) : std::nullopt;
}

std::optional<bool> boolean_in(const Value& value) {
  if (const auto* boolean = value.as<bool>()) return *boolean;
  const auto* text = value.as<std::string>();
  if (!text || text->size() > 5) return std::nullopt;
  std::string lower = *text;
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  const auto is = [&](std::string_view word) { return lower == word; };
  if (is("true") || is("1") || is("on") || is("yes")) return true;
  if (is("false") || is("0") || is("off") || is("no")) return false;
  return std::nullopt;
}

// Forms write everything as texts.
bool same_meaning(const Value& value, const Value& neutral) {
  if (value == neutral) return true;
  if (neutral.as<bool>()) return boolean_in(value) == boolean_in(neutral);
  if (neutral.as<int64_t>() || neutral.as<double>()) return number_in(value) == number_in(neutral);
  return false;
}

}  // namespace

int64_t read_integer(const Value& value, const std::string& where, Range range) {
  const auto integer = integer_in(value);
  // A double would round 2^63 - 1; x86's long double holds every int64.
  const auto exact = static_cast<long double>(integer.value_or(0));
  if (!integer || exact < range.low || exact > range.high)
    fail_at(where, "expected an integer", limits_of(range), ", found ", shown(value));
  return *integer;
}

double read_number(const Value& value, const std::string& where, Range range) {
  const auto number = number_in(value);
  // Written so that a text "nan" is refused too.
  if (!number || !(*number >= range.low && *number <= range.high))
    fail_at(where, "expected a number", limits_of(range), ", found ", shown(value));
  return *number;
}

bool read_boolean(const Value& value, const std::string& where) {
  const auto boolean = boolean_in(value);
  if (!boolean) fail_at(where, "expected true or false, found ", shown(value));
  return *boolean;
}

const std::string& read_text(const Value& value, const std::string& where) {
  const auto* text = value.as<std::string>();
  if (!text) fail_at(where, "expected a text, found ", shown(value));
  return *text;
}

const std::string& read_choice(const Value& value, const std::string& where,
                               const std::vector<std::string>& words) {
  const auto* text = value.as<std::string>();
  if (text && std::ranges::find(words, *text) != words.end()) return *text;
  std::string known;
  for (const std::string& word : words) known += (known.empty() ? "" : ", ") + quoted(word);
  fail_at(where, "expected one of ", known, ", found ", shown(value));
}

std::string read_bytes(const Value& value, const std::string& where) {
  if (const auto* bytes = value.as<Bytes>()) return bytes->data;
  if (auto buffer = from_buffer(value)) return std::move(*buffer);
  const auto* text = value.as<std::string>();
  if (!text) fail_at(where, "expected bytes or base64 in a text, found ", shown(value));
  auto decoded = from_base64(*text);
  if (!decoded) fail_at(where, "expected base64, found ", shown(value));
  return std::move(*decoded);
}

const Value::Array& read_array(const Value& value, const std::string& where, int64_t max_items) {
  const auto* array = value.as<Value::Array>();
  if (!array) fail_at(where, "expected an array, found ", shown(value));
  if (max_items >= 0 && std::cmp_greater(array->size(), max_items))
    fail_at(where, "expected at most ", max_items, " items, found ", array->size());
  return *array;
}

const Value::Object& read_object(const Value& value, const std::string& where) {
  const auto* object = value.as<Value::Object>();
  if (!object) fail_at(where, "expected an object, found ", shown(value));
  return *object;
}

bool says_nothing(const Value& value, const Value& neutral) {
  const auto* text = value.as<std::string>();
  const auto* boolean = value.as<bool>();
  return value.is_null() || (text && text->empty()) || (boolean && !*boolean) || same_meaning(value, neutral);
}

void refuse(const Value& value, const std::string& where, const std::string& why, const Value& neutral) {
  if (!says_nothing(value, neutral)) throw BodyError(ErrorCode::unsupported, where, why);
}

void fail_missing(const std::string& where, std::string_view name) {
  fail_at(member_path(where, name), "is required");
}

void fail_unknown(const std::string& where, std::string_view name, const std::vector<std::string>& known) {
  const std::string path = member_path(where, name);
  if (known.empty()) fail_at(path, "there is no such field");
  fail_at(path, "there is no such field; the nearest is ", quoted(nearest_name(name, known)));
}

namespace detail {

FieldDoc doc_of(std::string name, std::string type, std::string help, Range range) {
  FieldDoc doc{.name = std::move(name), .type = std::move(type), .help = std::move(help)};
  if (range.low > std::numeric_limits<double>::lowest()) doc.minimum = range.low;
  if (range.high < std::numeric_limits<double>::max()) doc.maximum = range.high;
  return doc;
}

}  // namespace detail
}  // namespace shoal::server
