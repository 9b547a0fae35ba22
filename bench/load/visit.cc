#include "bench/load/visit.h"

#include <algorithm>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "bench/load/exchange.h"

namespace shoal::load {
namespace {

constexpr size_t kReadBytes = 16 << 10;

Task<> read_answer(Visit& visit, const VisitPlace& place, Exchange& exchange) {
  Wire& wire = *visit.wire;
  wire.buffer().resize(kReadBytes);
  for (bool done = false; !done;) {
    const Wire::Transfer got = co_await wire.read_some(asio::buffer(wire.buffer()));
    const int64_t now = now_us();
    if (got.error && visit.timed_out) {
      exchange.fail_with(now, blame(visit, place, {}));
      co_return;
    }
    const bool closed = got.error == asio::error::eof;
    if (got.error)
      exchange.end(now, closed ? Exchange::End::closed : Exchange::End::broken, reason_of(got.error));
    done = got.error || exchange.take({wire.buffer().data(), got.bytes}, now);
    if (!done) co_await listen(visit, place, exchange.heard_s());
  }
}

}  // namespace

std::string reason_of(const boost::system::error_code& error) {
  if (error == asio::error::eof || error == asio::ssl::error::stream_truncated)
    return "the server closed the connection";
  return error.message();
}

Failure blame(const Visit& visit, const VisitPlace& place, Failure failure) {
  if (!visit.timed_out) return failure;
  const RequestRecord& record = visit.record;
  const char* what = record.first_byte_us == 0 ? "no answer"
                     : record.pieces.empty()   ? "no sound"
                                               : "not whole";
  return {"timeout", concat(what, " after ", place.options.timeout_s, " s, ", record.body_bytes, " bytes")};
}

Task<std::optional<Failure>> connect(Visit& visit, const VisitPlace& place) {
  std::optional<Failure> failure;
  if (!visit.is_new) co_return failure;
  failure = co_await visit.wire->open(place.endpoints, place.options.target.url);
  if (failure) {
    failure = blame(visit, place, std::move(*failure));
    co_return failure;
  }
  visit.record.connected_us = now_us();
  if (visit.record.slow) visit.wire->hold_little();
  co_return failure;
}

Task<> listen(const Visit& visit, const VisitPlace& place, double heard_s) {
  if (visit.pace <= 0 || visit.record.pieces.empty()) co_return;
  Timer timer(visit.wire->executor());
  const int64_t first_us = visit.record.pieces.front().at_us;
  while (!place.stopped && !visit.timed_out) {
    const double reading_s = static_cast<double>(now_us() - first_us) / 1e6;
    const auto wait_us = static_cast<int64_t>(1e6 * wait_of_reader_s(visit.pace, heard_s, reading_s));
    if (wait_us == 0) break;
    timer.expires_at(time_of(now_us() + std::min(wait_us, kPatience_us)));
    co_await timer.async_wait(kAwait);
  }
}

Task<bool> visit_by_http(Visit& visit, const VisitPlace& place, const Hearing& hearing) {
  Exchange exchange(hearing, visit.record);
  std::optional<Failure> failure = co_await connect(visit, place);
  if (failure) {
    exchange.fail_with(now_us(), std::move(*failure));
    co_return false;
  }
  const std::string question = bytes_of(place.options.target, place.options.question, visit.turn);
  const Wire::Transfer sent = co_await visit.wire->write(question);
  if (sent.error) {
    exchange.fail_with(now_us(),
                       blame(visit, place, {"no_answer", concat("no answer: ", reason_of(sent.error))}));
    co_return false;
  }
  visit.record.sent_us = now_us();
  co_await read_answer(visit, place, exchange);
  co_return exchange.can_go_on();
}

}  // namespace shoal::load
