#include "server/wyoming/socket.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "base/error.h"

namespace shoal::server {
namespace {

constexpr auto kAwaitSocket = boost::asio::as_tuple(boost::asio::use_awaitable_t<Executor>());
// At most this much is offered at once, so that a slow reader's progress is visible.
constexpr size_t kWrittenPiece = 64 << 10;
// What a connection may hold without being counted.
constexpr size_t kUncounted = 8 << 10;
constexpr int64_t kMostCounted = 4 << 20;
constexpr std::chrono::seconds kLastReads{3};

}  // namespace

WyomingSocket::WyomingSocket(WyomingStream socket, std::string peer, WyomingTimes times, BodyBudget& budget)
    : socket_(std::move(socket)),
      executor_(socket_.get_executor()),
      peer_(std::move(peer)),
      times_(times),
      share_(budget) {}

void WyomingSocket::check_room() {
  const size_t held = reader_.buffered_bytes();
  if (held <= kUncounted) {
    share_.release();
  } else if (!share_.hold(static_cast<int64_t>(held), kMostCounted)) {
    fail(ErrorCode::resource_exhausted, "there is no memory for events at the moment");
  }
}

Task<std::optional<WyomingEvent>> WyomingSocket::read() {
  while (!closing_) {
    std::optional<WyomingEvent> event = reader_.next();
    if (event) event_deadline_ = Time::max();
    check_room();
    if (event) co_return event;
    if (reader_.within_event() && event_deadline_ == Time::max())
      event_deadline_ = std::chrono::steady_clock::now() + times_.event;
    auto [error, bytes] = co_await socket_.async_read_some(boost::asio::buffer(piece_), kAwaitSocket);
    if (closing_) break;
    if (event_is_late_) fail(ErrorCode::deadline_exceeded, "the event took too long to arrive");
    if (error == boost::asio::error::eof && !reader_.within_event()) break;
    if (error) fail(ErrorCode::cancelled, "the connection broke: ", error.message());
    reader_.add({piece_.data(), bytes});
  }
  co_return std::nullopt;
}

Task<> WyomingSocket::write(std::string_view bytes) {
  if (closing_) fail(ErrorCode::cancelled, "the connection is closed");
  while (!bytes.empty()) {
    const auto piece = boost::asio::buffer(bytes.data(), std::min(bytes.size(), kWrittenPiece));
    write_deadline_ = std::chrono::steady_clock::now() + times_.write;
    auto [error, taken] = co_await socket_.async_write_some(piece, kAwaitSocket);
    write_deadline_ = Time::max();
    if (error && reader_is_slow_) fail(ErrorCode::deadline_exceeded, "the client took nothing for too long");
    if (error) fail(ErrorCode::cancelled, "the connection broke: ", error.message());
    bytes.remove_prefix(taken);
  }
}

Task<> WyomingSocket::close(uint16_t, std::string_view) {
  closing_ = true;
  boost::system::error_code ignored;
  socket_.shutdown(boost::asio::socket_base::shutdown_send, ignored);
  socket_.cancel(ignored);  // read() ends
  co_return;
}

Task<> WyomingSocket::finish() {
  co_await close(0, "");
  end_ = std::chrono::steady_clock::now() + kLastReads;
  bool more = true;
  while (more && socket_.is_open()) {
    auto [error, bytes] = co_await socket_.async_read_some(boost::asio::buffer(piece_), kAwaitSocket);
    more = !error;
  }
  cut();
}

void WyomingSocket::sweep(Time now) {
  boost::system::error_code ignored;
  if (now >= event_deadline_) {
    event_is_late_ = true;
    event_deadline_ = Time::max();
    socket_.cancel(ignored);
  }
  if (now >= write_deadline_) reader_is_slow_ = true;
  if (now >= write_deadline_ || now >= end_) cut();
}

void WyomingSocket::cut() {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace shoal::server
