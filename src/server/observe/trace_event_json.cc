#include "server/observe/trace_event_json.h"

#include <algorithm>
#include <charconv>

namespace shoal::server {
namespace {

constexpr uint64_t kMostOfADouble = uint64_t{1} << 53;

void append_number(std::string& out, std::integral auto value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

// Names are literals of ours: they need no escapes.
void append_text(std::string& out, std::string_view name, std::string_view text) {
  ((out += ",\"") += name) += "\":\"";
  (out += text) += '"';
}

void append_member(std::string& out, std::string_view name, std::integral auto value) {
  ((out += ",\"") += name) += "\":";
  append_number(out, value);
}

void append_args(std::string& out, std::span<const TraceNumber> numbers) {
  out += ",\"args\":{";
  for (size_t i = 0; i < numbers.size(); ++i) {
    const std::string_view quote = numbers[i].value > kMostOfADouble ? "\"" : "";
    ((out += i == 0 ? "\"" : ",\"") += numbers[i].name) += "\":";
    out += quote;
    append_number(out, numbers[i].value);
    out += quote;
  }
  out += '}';
}

void open_event(std::string& out, std::string_view phase, std::string_view name) {
  (out += kEventBreak) += "{\"pid\":1";
  append_text(out, "ph", phase);
  append_text(out, "name", name);
}

}  // namespace

std::string trace_head() {
  return "[\n{\"pid\":1,\"ph\":\"M\",\"name\":\"process_name\",\"args\":{\"name\":\"shoal\"}}";
}

void append_thread_name(std::string& out, uint32_t thread, std::string_view name) {
  open_event(out, "M", "thread_name");
  append_member(out, "tid", thread);
  ((out += ",\"args\":{\"name\":\"") += name) += "\"}}";
}

void append_event(std::string& out, const TraceEvent& event, int64_t origin_us) {
  const int64_t start = std::max<int64_t>(0, event.start_us - origin_us);
  const int64_t end = std::max(start, event.end_us - origin_us);
  if (event.thread != 0) {
    open_event(out, "X", event.name);
    append_member(out, "tid", event.thread);
    append_member(out, "ts", start);
    append_member(out, "dur", end - start);
    append_args(out, event.numbers);
    out += '}';
    return;
  }
  for (const bool begins : {true, false}) {
    open_event(out, begins ? "b" : "e", event.name);
    append_text(out, "cat", event.name);
    append_member(out, "id", event.track);
    append_member(out, "tid", 0);
    append_member(out, "ts", begins ? start : end);
    if (begins) append_args(out, event.numbers);
    out += '}';
  }
}

}  // namespace shoal::server
