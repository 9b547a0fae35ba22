#include "server/wyoming/event_reader.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace shoal::server {
namespace {

// A member of the line that counts bytes.
int64_t length_in(const Value& line, std::string_view name, int64_t most) {
  const Value* member = line.find(name);
  if (!member || member->is_null()) return 0;
  const int64_t* length = member->as<int64_t>();
  if (!length || *length < 0)
    fail(ErrorCode::invalid_argument, name, ": expected the number of bytes that follow the line");
  if (*length > most) fail(ErrorCode::too_large, name, ": expected at most ", most, " bytes, got ", *length);
  return *length;
}

Value parse_line(std::string_view line) {
  Value value;
  try {
    value = read_json(line);
  } catch (const BodyError& error) {
    fail(ErrorCode::invalid_argument, "an event begins with a line of JSON: ", error.message());
  }
  if (!value.as<Value::Object>())
    fail(ErrorCode::invalid_argument, "an event begins with a JSON object in a line");
  return value;
}

Error wrong_data(const std::string& why) { return BodyError(ErrorCode::invalid_argument, "data", why); }

// The members of `more` over those of `onto`.
void merge(Value::Object more, Value::Object& onto) {
  for (auto& [name, value] : more) {
    const auto found = std::ranges::find(onto, name, &std::pair<std::string, Value>::first);
    if (found == onto.end())
      onto.emplace_back(std::move(name), std::move(value));
    else
      found->second = std::move(value);
  }
}

// What the line says of an event, besides lengths.
WyomingEvent event_of(Value line) {
  WyomingEvent event;
  for (auto& [name, value] : std::get<Value::Object>(line.data)) {
    if (name == "type" && value.as<std::string>()) event.type = *value.as<std::string>();
    if (name != "data" || value.is_null()) continue;
    if (value.as<Value::Object>())
      event.data = std::move(value);
    else
      event.wrong = wrong_data("expected an object");
  }
  if (event.type.empty())
    event.wrong = BodyError(ErrorCode::invalid_argument, "type", "expected the name of an event");
  return event;
}

}  // namespace

void WyomingReader::add(std::string_view bytes) {
  if (start_ > 0) {
    buffer_.erase(0, start_);
    start_ = 0;
  }
  buffer_.append(bytes);
}

void WyomingReader::drop(size_t bytes) {
  start_ += bytes;
  if (start_ < buffer_.size()) return;
  // What one large event needed is not kept for small ones.
  if (buffer_.capacity() > size_t{64} << 10) std::string().swap(buffer_);
  buffer_.clear();
  start_ = 0;
}

bool WyomingReader::read_head() {
  const std::string_view rest = std::string_view(buffer_).substr(start_);
  const size_t end = rest.find('\n', searched_);
  if (std::min(end, rest.size()) > limits_.line_bytes)
    fail(ErrorCode::too_large, "an event begins with a line of at most ", limits_.line_bytes, " bytes");
  if (end == std::string_view::npos) {
    searched_ = rest.size();
    return false;
  }
  searched_ = 0;
  Value line = parse_line(rest.substr(0, end));
  data_left_ = static_cast<size_t>(length_in(line, "data_length", static_cast<int64_t>(limits_.data_bytes)));
  payload_left_ = length_in(line, "payload_length", limits_.payload_bytes);
  event_ = event_of(std::move(line));
  has_head_ = true;
  drop(end + 1);
  return true;
}

bool WyomingReader::read_data() {
  if (data_left_ == 0) return true;
  if (buffered_bytes() < data_left_) return false;
  try {
    Value more = read_json(std::string_view(buffer_).substr(start_, data_left_));
    if (!more.as<Value::Object>())
      event_.wrong = wrong_data("expected an object");
    else
      merge(std::get<Value::Object>(std::move(more.data)), std::get<Value::Object>(event_.data.data));
  } catch (const BodyError& error) {
    event_.wrong = wrong_data(error.message());
  }
  drop(std::exchange(data_left_, 0));
  return true;
}

bool WyomingReader::drop_payload() {
  const size_t here = std::min(buffered_bytes(), static_cast<size_t>(payload_left_));
  payload_left_ -= static_cast<int64_t>(here);
  if (here > 0) drop(here);
  return payload_left_ == 0;
}

std::optional<WyomingEvent> WyomingReader::next() {
  const bool whole = (has_head_ || read_head()) && read_data() && drop_payload();
  if (!whole) return std::nullopt;
  has_head_ = false;
  return std::exchange(event_, {});
}

std::string wyoming_event(std::string_view type, const Value& data, std::string_view payload) {
  Value::Object line{{"type", {std::string(type)}}};
  const Value::Object* members = data.as<Value::Object>();
  const std::string json = members && !members->empty() ? write_json(data) : "";
  if (!json.empty()) line.emplace_back("data_length", Value{static_cast<int64_t>(json.size())});
  if (!payload.empty()) line.emplace_back("payload_length", Value{static_cast<int64_t>(payload.size())});
  return concat(write_json({std::move(line)}), "\n", json, payload);
}

}  // namespace shoal::server
