#include "bench/load/item_reader.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/base64.h"
#include "base/error.h"
#include "base/printable.h"

namespace shoal::load {
namespace {

constexpr size_t kMostLineBytes = size_t{256} << 20;

std::string text_in(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

int rate_in(const nlohmann::json& object) {
  const auto found = object.find("sample_rate");
  return found != object.end() && found->is_number_unsigned() && *found <= kMostRate_hz ? found->get<int>()
                                                                                        : 0;
}

}  // namespace

void ItemReader::take(std::string_view bytes, int64_t at_us) {
  while (!bytes.empty() && !listener_.is_over()) {
    const size_t end = bytes.find('\n');
    pending_ += bytes.substr(0, end);
    if (pending_.size() > kMostLineBytes)
      return listener_.note({"endless", "a line of the batch has more than 256 MiB"});
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    take_line(std::exchange(pending_, {}), at_us);
  }
}

void ItemReader::take_line(std::string_view line, int64_t at_us) {
  const auto item = nlohmann::json::parse(line, nullptr, false);
  if (!item.is_object())
    return listener_.note(
        {"not_sound", concat("expected an item in JSON, got \"", printable(line, 60), "\"")});
  ++ended_;
  const std::string sound = text_in(item, "audio_base64");
  if (sound.empty()) {
    if (failure_) return;
    const std::string code = text_in(item, "code");
    failure_ = Failure{"error_" + (code.empty() ? "unknown" : printable(code, 40)),
                       concat("an item failed: ", printable(text_in(item, "error"), 200))};
    return;
  }
  const std::optional<std::string> bytes = from_base64(sound);
  if (!bytes) return listener_.note({"bad_sound", "the sound of an item is not base64"});
  const int rate_hz = rate_in(item);
  if (spoken_++ == 0) {
    listener_.begin(rate_hz);
  } else if (rate_hz != rate_hz_) {
    return listener_.note(
        {"rate_contradiction", concat("an item of ", rate_hz, " Hz follows one of ", rate_hz_, " Hz")});
  }
  rate_hz_ = rate_hz;
  listener_.hear(*bytes, at_us);
}

void ItemReader::finish() {
  if (failure_) return listener_.note(*failure_);
  if (ended_ != items_ || !pending_.empty())
    return listener_.note({"cut_off", concat("the answer has ", ended_, " of ", items_, " items")});
  listener_.finish_sound();
}

}  // namespace shoal::load
