#include "bench/load/exchange.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace shoal::load {
namespace {

constexpr size_t kMostRefusalBytes = 400;       // are told
constexpr int64_t kMostRefusedBytes = 1 << 20;  // are read: some refuse without an end

bool may_be_sound(const std::string& content_type) {
  return content_type.empty() || content_type.starts_with("audio/") ||
         content_type.starts_with("application/octet-stream") || content_type.starts_with("binary/");
}

}  // namespace

Exchange::Exchange(const Hearing& hearing, RequestRecord& record)
    : record_(record),
      listener_(hearing, record),
      answer_([this](std::string_view bytes) { take_body(bytes); }) {
  if (hearing.items > 0) items_.emplace(listener_, hearing.items);
}

bool Exchange::is_wanted() const {
  if (record_.status != 200) return false;
  return items_ ? record_.content_type.starts_with(ItemReader::kContentType)
                : may_be_sound(record_.content_type);
}

void Exchange::begin_body() {
  body_begun_ = true;
  const AnswerHead& head = answer_.head();
  record_.status = head.status;
  record_.content_type = head.content_type;
  if (!items_) listener_.begin(head.rate_hz);
}

void Exchange::take_body(std::string_view bytes) {
  if (!body_begun_) begin_body();
  record_.body_bytes += std::ssize(bytes);
  if (!is_wanted()) {
    refusal_ += bytes.substr(0, kMostRefusalBytes - std::min(kMostRefusalBytes, refusal_.size()));
    if (record_.body_bytes > kMostRefusedBytes) note_refusal();
  } else if (items_) {
    items_->take(bytes, now_us_);
  } else {
    listener_.hear(bytes, now_us_);
  }
}

bool Exchange::take(std::string_view bytes, int64_t at_us) {
  now_us_ = at_us;
  if (record_.first_byte_us == 0) record_.first_byte_us = at_us;
  if (auto problem = answer_.take(bytes))
    listener_.note({"bad_http", concat("the answer is not HTTP: ", *problem)});
  if (answer_.has_head() && !body_begun_) begin_body();
  if (listener_.is_over()) listener_.end(at_us);
  if (!listener_.has_ended() && answer_.is_done()) finish(at_us);
  return listener_.has_ended();
}

void Exchange::note_refusal() {
  if (record_.status != 200)
    listener_.note({concat("status_", record_.status),
                    concat("status ", record_.status, ": ", printable(refusal_, 200))});
  else
    listener_.note({"not_sound", concat("expected sound, got ", printable(record_.content_type, 60), ": ",
                                        printable(refusal_, 100))});
}

// The answer is whole.
void Exchange::finish(int64_t at_us) {
  if (!is_wanted())
    note_refusal();
  else if (items_)
    items_->finish();
  else
    listener_.finish_sound();
  listener_.end(at_us);
}

void Exchange::end(int64_t at_us, End how, const std::string& why) {
  if (listener_.has_ended()) return;
  if (how == End::closed && answer_.is_whole_at_end()) {
    finish(at_us);
  } else if (record_.first_byte_us == 0) {
    fail_with(at_us, {"no_answer", concat("no answer: ", why)});
  } else {
    fail_with(at_us, {"cut_off", concat("the answer broke off after ", record_.body_bytes, " bytes: ", why)});
  }
}

void Exchange::fail_with(int64_t at_us, Failure failure) {
  if (listener_.has_ended()) return;
  listener_.note(std::move(failure));
  listener_.end(at_us);
}

bool Exchange::can_go_on() const {
  return answer_.is_done() && answer_.head().keeps_alive && record_.outcome != Outcome::left;
}

}  // namespace shoal::load
