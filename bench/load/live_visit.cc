// A request on our WebSocket: an utterance, whose text is sent at once.
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "bench/load/live_exchange.h"
#include "bench/load/live_stream.h"
#include "bench/load/visit.h"

namespace shoal::load {
namespace {

constexpr size_t kPartBytes = 16 << 10;
constexpr size_t kMostTextBytes = 1 << 20;

Task<std::optional<Failure>> begin(Visit& visit, const VisitPlace& place) {
  std::optional<Failure> failure = co_await connect(visit, place);
  if (failure || !visit.is_new) co_return failure;
  const HeaderFields fields = header_fields_of(place.options.question);
  failure = co_await visit.wire->become_live(place.options.target.url, fields);
  if (failure) failure = blame(visit, place, std::move(*failure));
  if (failure && failure->kind.starts_with("status_"))
    visit.record.status = std::stoi(failure->kind.substr(7));
  co_return failure;
}

Task<> read_messages(Visit& visit, const VisitPlace& place, LiveExchange& exchange) {
  Wire& wire = *visit.wire;
  wire.buffer().resize(kPartBytes);
  std::string text;
  for (bool done = false; !done;) {
    const LiveStream::Part got = co_await wire.live().read_some(asio::buffer(wire.buffer()));
    const int64_t now = now_us();
    if (got.error) {
      if (visit.timed_out) exchange.fail_with(now, blame(visit, place, {}));
      exchange.end(now, reason_of(got.error));
      co_return;
    }
    const std::string_view bytes(wire.buffer().data(), got.bytes);
    if (got.is_text) {
      text += bytes;
      if (text.size() > kMostTextBytes)
        exchange.fail_with(now, {"endless", "a message has more than 1 MiB of text"});
      done = text.size() > kMostTextBytes || (got.is_last && exchange.take_message(text, now));
      if (got.is_last) text.clear();
    } else {
      done = exchange.take_sound(bytes, now);
    }
    if (!done) co_await listen(visit, place, exchange.heard_s());
  }
}

}  // namespace

Task<bool> visit_live(Visit& visit, const VisitPlace& place, const Hearing& hearing) {
  LiveExchange exchange(hearing, visit.record);
  std::optional<Failure> failure = co_await begin(visit, place);
  if (failure) {
    exchange.fail_with(now_us(), std::move(*failure));
    co_return false;
  }
  for (const std::string& message : messages_of(place.options.question, visit.turn)) {
    const Wire::Transfer sent = co_await visit.wire->live().write(message);
    if (!sent.error) continue;
    exchange.fail_with(now_us(),
                       blame(visit, place, {"no_answer", concat("no answer: ", reason_of(sent.error))}));
    co_return false;
  }
  visit.record.sent_us = now_us();
  co_await read_messages(visit, place, exchange);
  co_return exchange.can_go_on();
}

}  // namespace shoal::load
