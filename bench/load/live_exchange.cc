#include "bench/load/live_exchange.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace shoal::load {
namespace {

constexpr int kSwitched = 101;

std::string told(const nlohmann::json& message, const char* name) {
  const auto found = message.find(name);
  return found != message.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

bool LiveExchange::arrived(int64_t at_us) {
  record_.status = kSwitched;
  if (record_.first_byte_us == 0) record_.first_byte_us = at_us;
  if (listener_.is_over()) listener_.end(at_us);
  return listener_.has_ended();
}

bool LiveExchange::take_sound(std::string_view bytes, int64_t at_us) {
  record_.body_bytes += std::ssize(bytes);
  if (!started_) listener_.note({"not_sound", "sound before a message that says its rate"});
  listener_.hear(bytes, at_us);
  return arrived(at_us);
}

bool LiveExchange::take_message(std::string_view json, int64_t at_us) {
  const auto message = nlohmann::json::parse(json, nullptr, false);
  const std::string type = message.is_object() ? told(message, "type") : "";
  if (type.empty()) {
    listener_.note({"not_sound", concat("expected a message in JSON, got \"", printable(json, 60), "\"")});
  } else if (type == "started" && !started_) {
    started_ = true;
    record_.content_type = told(message, "content_type");
    const auto rate = message.find("sample_rate");
    const bool is_rate = rate != message.end() && rate->is_number_unsigned() && *rate <= kMostRate_hz;
    listener_.begin(is_rate ? rate->get<int>() : 0);
  } else if (type == "error") {
    const std::string code = told(message, "code");
    listener_.note({"error_" + (code.empty() ? "unknown" : printable(code, 40)),
                    concat("the server says: ", printable(told(message, "message"), 200))});
  } else if (type == "done") {
    const std::string outcome = told(message, "outcome");
    done_ = outcome == "completed";
    if (done_)
      listener_.finish_sound();
    else
      listener_.note({"cut_off", concat("the utterance has ended as ", printable(outcome, 40))});
    arrived(at_us);
    listener_.end(at_us);
  }
  return arrived(at_us);
}

void LiveExchange::end(int64_t at_us, const std::string& why) {
  if (record_.first_byte_us == 0)
    fail_with(at_us, {"no_answer", concat("no answer: ", why)});
  else
    fail_with(at_us, {"cut_off", concat("the answer broke off after ", record_.body_bytes, " bytes: ", why)});
}

void LiveExchange::fail_with(int64_t at_us, Failure failure) {
  if (listener_.has_ended()) return;
  listener_.note(std::move(failure));
  listener_.end(at_us);
}

}  // namespace shoal::load
