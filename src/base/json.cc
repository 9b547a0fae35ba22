#include "base/json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/file.h"

namespace shoal {
namespace {

constexpr size_t kMaxDepth = 64;

}  // namespace

// Receives nlohmann's parse events. The parser itself does not recurse, so the depth limit is all that guards
// the stack.
class JsonBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonBuilder(std::string_view name) : name_(name) {}

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

  bool start_object(std::size_t) override { return open(Json::Object{}); }
  bool start_array(std::size_t) override { return open(Json::Array{}); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    if (!keys_.back().insert(value).second)
      fail(ErrorCode::corrupt_file, name_, ": duplicate key \"", value, "\"");
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
  template <typename Value>
  Json make(Value&& value) {
    Json json;
    json.value_ = std::forward<Value>(value);
    if (open_.empty()) {
      json.where_ = name_ + ":";
    } else if (open_.back().is_object()) {
      const std::string& parent = open_.back().where_;
      json.where_ = parent + (open_.size() == 1 ? " " : ".") + key_;
    }
    // Elements of arrays carry no path of their own: tables of a million rows would double in size.
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
    } else if (auto* array = std::get_if<Json::Array>(&open_.back().value_)) {
      array->push_back(std::move(json));
    } else {
      std::get<Json::Object>(open_.back().value_).emplace_back(std::move(key_), std::move(json));
    }
  }

  template <typename Container>
  bool open(Container&& container) {
    if (open_.size() >= kMaxDepth)
      fail(ErrorCode::corrupt_file, name_, ": JSON nested deeper than ", kMaxDepth);
    Json json = make(std::forward<Container>(container));
    parent_keys_.push_back(std::move(key_));
    open_.push_back(std::move(json));
    keys_.emplace_back();
    return true;
  }

  bool close() {
    Json json = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    key_ = std::move(parent_keys_.back());
    parent_keys_.pop_back();
    attach(std::move(json));
    return true;
  }

  std::string name_;
  Json root_;
  bool complete_ = false;
  std::vector<Json> open_;                             // containers not closed yet, outermost first
  std::vector<std::string> parent_keys_;               // the key under which each of them will be attached
  std::vector<std::unordered_set<std::string>> keys_;  // keys seen in each
  std::string key_;
};

namespace {

[[noreturn]] void wrong_kind(const Json& json, std::string_view expected) {
  fail(ErrorCode::invalid_argument, json.where().empty() ? "JSON value" : json.where(), ": expected ",
       expected);
}

}  // namespace

Json Json::parse(std::string_view text, std::string_view name) {
  JsonBuilder builder(name);
  if (!nlohmann::json::sax_parse(text, &builder)) fail(ErrorCode::corrupt_file, name, ": not valid JSON");
  return builder.take();
}

Json Json::read_file(const std::string& path, int64_t max_bytes) {
  return parse(shoal::read_file(path, max_bytes), file_name(path));
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
  fail(ErrorCode::invalid_argument, where_, where_.empty() ? "" : " ", "key \"", key, "\" is missing");
}

}  // namespace shoal
