#include "base/json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/file.h"

namespace shoal {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxKeyInMessage = 64;
constexpr size_t kMaxPathInMessage = 256;

// At most `limit` bytes of `text`, cut between characters.
std::string shortened(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return concat(text.substr(0, limit), "…");
}

}  // namespace

// What where() needs, once per document. A value stores two numbers instead of a path: a tokenizer has
// hundreds of thousands of values and almost never an error.
struct Json::Places {
  enum class Kind : uint8_t { document, object, array };
  struct Container {
    uint32_t parent;
    uint32_t step;
    Kind kind;
  };

  std::string name;
  std::vector<Container> containers = {{0, 0, Kind::document}};  // a parent comes before its children
  std::string keys;  // the keys of all objects, shortened, each after a byte that holds its length

  uint32_t add_key(std::string_view key) {
    const auto step = static_cast<uint32_t>(keys.size());
    const std::string text = shortened(key, kMaxKeyInMessage);
    keys += static_cast<char>(text.size());
    keys += text;
    return step;
  }

  std::string step_text(uint32_t container, uint32_t step, bool first) const {
    if (containers[container].kind == Kind::array) return concat(first ? " " : "", "[", step, "]");
    const auto length = static_cast<unsigned char>(keys[step]);
    return (first ? " " : ".") + keys.substr(step + 1, length);
  }
};

// Receives nlohmann's parse events. The parser itself does not recurse, so the depth limit is all that guards
// the stack.
class JsonBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonBuilder(std::string_view name) : name_(shortened(name, kMaxPathInMessage)) {
    places_->name = name_;
  }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(static_cast<int64_t>(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<uint64_t>(INT64_MAX)) return put(static_cast<double>(value));
    return put(static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(Json::Object{}, Json::Places::Kind::object); }
  bool start_array(std::size_t) override { return open(Json::Array{}, Json::Places::Kind::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    if (!open_.back().keys.insert(value).second) {
      fail(ErrorCode::corrupt_file, name_, ": duplicate key \"", shortened(value, kMaxKeyInMessage), "\"");
    }
    step_ = places_->add_key(value);
    key_ = std::move(value);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fail(ErrorCode::corrupt_file, name_, ": not valid JSON (at byte ", position, ")");
  }

  Json take() {
    if (!complete_) fail(ErrorCode::corrupt_file, name_, ": not valid JSON (it is empty)");
    return std::move(root_);
  }

 private:
  struct Open {
    Json json;
    std::string parent_key;  // the key under which it will be attached
    uint32_t place;          // in Places::containers
    std::unordered_set<std::string> keys;
  };

  template <typename Value>
  Json make(Value&& value) {
    Json json;
    json.value_ = std::forward<Value>(value);
    json.places_ = places_;
    if (!open_.empty()) {
      const auto* array = std::get_if<Json::Array>(&open_.back().json.value_);
      json.container_ = open_.back().place;
      json.step_ = array ? static_cast<uint32_t>(array->size()) : step_;
    }
    return json;
  }

  template <typename Value>
  bool put(Value&& value) {
    attach(make(std::forward<Value>(value)));
    return true;
  }

  void attach(Json&& json) {
    if (open_.empty()) {
      root_ = std::move(json);
      complete_ = true;
    } else if (auto* array = std::get_if<Json::Array>(&open_.back().json.value_)) {
      array->push_back(std::move(json));
    } else {
      std::get<Json::Object>(open_.back().json.value_).emplace_back(std::move(key_), std::move(json));
    }
  }

  template <typename Container>
  bool open(Container&& container, Json::Places::Kind kind) {
    if (open_.size() >= kMaxDepth)
      fail(ErrorCode::corrupt_file, name_, ": JSON nested deeper than ", kMaxDepth);
    Json json = make(std::forward<Container>(container));
    const auto place = static_cast<uint32_t>(places_->containers.size());
    places_->containers.push_back({json.container_, json.step_, kind});
    open_.push_back({std::move(json), std::move(key_), place, {}});
    return true;
  }

  bool close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    key_ = std::move(closed.parent_key);
    attach(std::move(closed.json));
    return true;
  }

  std::string name_;
  std::shared_ptr<Json::Places> places_ = std::make_shared<Json::Places>();
  Json root_;
  bool complete_ = false;
  std::vector<Open> open_;  // containers not closed yet, outermost first
  std::string key_;         // of the next member
  uint32_t step_ = 0;       // where Places holds it
};

namespace {

[[noreturn]] void wrong_kind(const Json& json, std::string_view expected) {
  const std::string where = json.where();
  const std::string_view join = where.ends_with(':') ? " expected " : ": expected ";
  fail(ErrorCode::invalid_argument, where.empty() ? "JSON value" : where, join, expected);
}

}  // namespace

Json Json::parse(std::string_view text, std::string_view name) {
  // Places count in 32 bits; there are fewer values and key bytes than bytes of text.
  if (text.size() > UINT32_MAX) fail(ErrorCode::too_large, name, ": JSON of ", text.size(), " bytes");
  JsonBuilder builder(name);
  if (!nlohmann::json::sax_parse(text, &builder)) fail(ErrorCode::corrupt_file, name, ": not valid JSON");
  return builder.take();
}

Json Json::read_file(const std::string& path, int64_t max_bytes) {
  return parse(shoal::read_file(path, max_bytes), file_name(path));
}

std::string Json::where() const {
  if (!places_) return "";
  std::vector<std::pair<uint32_t, uint32_t>> steps;  // container and step, innermost first
  for (uint32_t at = container_, step = step_; at != 0;) {
    steps.emplace_back(at, step);
    step = places_->containers[at].step;
    at = places_->containers[at].parent;
  }
  std::string path;
  for (auto it = steps.rbegin(); it != steps.rend() && path.size() <= kMaxPathInMessage; ++it)
    path += places_->step_text(it->first, it->second, path.empty());
  return concat(places_->name, ":", shortened(path, kMaxPathInMessage));
}

bool Json::as_bool() const {
  if (const auto* value = std::get_if<bool>(&value_)) return *value;
  wrong_kind(*this, "true or false");
}

int64_t Json::as_integer() const {
  if (const auto* value = std::get_if<int64_t>(&value_)) return *value;
  if (const auto* value = std::get_if<double>(&value_)) {
    if (std::floor(*value) == *value && std::abs(*value) < 9e15) return static_cast<int64_t>(*value);
  }
  wrong_kind(*this, "an integer");
}

double Json::as_number() const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  if (const auto* value = std::get_if<int64_t>(&value_)) return static_cast<double>(*value);
  wrong_kind(*this, "a number");
}

const std::string& Json::as_string() const {
  if (const auto* value = std::get_if<std::string>(&value_)) return *value;
  wrong_kind(*this, "a string");
}

const Json::Array& Json::as_array() const {
  if (const auto* value = std::get_if<Array>(&value_)) return *value;
  wrong_kind(*this, "an array");
}

const Json::Object& Json::as_object() const {
  if (const auto* value = std::get_if<Object>(&value_)) return *value;
  wrong_kind(*this, "an object");
}

const Json* Json::find(std::string_view key) const {
  for (const auto& [name, value] : as_object()) {
    if (name == key) return &value;
  }
  return nullptr;
}

const Json& Json::at(std::string_view key) const {
  if (const Json* value = find(key)) return *value;
  const std::string where = this->where();
  fail(ErrorCode::invalid_argument, where, where.empty() ? "" : " ", "key \"", key, "\" is missing");
}

}  // namespace shoal
