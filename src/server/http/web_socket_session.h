// ServedWebSocket by Beast over any stream (a channel; bytes in memory when fuzzed).
#pragma once

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <utility>

#include "base/error.h"
#include "server/http/response_head.h"
#include "server/http/web_socket.h"

namespace shoal::server {

// The last bytes of otherwise good UTF-8 begin a character and do not end it.
inline bool ends_within_character(std::string_view text) {
  for (size_t back = 1; back <= std::min(text.size(), size_t{3}); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte < 0x80) return false;
    if (byte >= 0xC0) return back < (byte < 0xE0 ? 2u : byte < 0xF0 ? 3u : 4u);
  }
  return false;
}

// Beast would have a timer for each socket; the deadlines are fields here too, compared by sweep().
template <typename Stream>
class WebSocketSession final : public ServedWebSocket {
 public:
  WebSocketSession(Stream& stream, const Request& request, const WebSocketLimits& limits, BodyBudget& budget);

  const Request& request() const override { return request_; }
  Executor executor() const override { return executor_; }
  Task<std::optional<Message>> read() override;
  Task<> write_text(std::string_view text) override { return write(true, text); }
  Task<> write_binary(std::string_view bytes) override { return write(false, bytes); }
  Task<> close(uint16_t code, std::string_view reason) override;

  Task<bool> accept() override;
  bool sweep(TimePoint now, std::shared_ptr<void> owner) override;
  bool closed_cleanly() const override { return closed_cleanly_; }
  uint64_t bytes_received() const override { return bytes_received_; }
  uint64_t bytes_sent() const override { return bytes_sent_; }

 private:
  static constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable_t<Executor>());
  static constexpr size_t kPiece = 64 << 10;
  // A socket that waits for a message has this much memory, uncounted.
  static constexpr size_t kFirstPiece = 4 << 10;
  static constexpr std::chrono::seconds kGoodbye{5};  // for the peer to answer a close

  static TimePoint now() { return std::chrono::steady_clock::now(); }
  Task<> write(bool text, std::string_view bytes);
  // Reserves memory in the budget for the next message before it arrives. False: there is not enough.
  bool make_room(std::string& data);
  void heard();

  // Without compression: sound does not shrink.
  boost::beast::websocket::stream<Stream&, false> socket_;
  const Request& request_;
  const WebSocketLimits limits_;
  const Executor executor_;
  BodyShare share_;  // of the message that comes in, or that its reader is at
  bool reading_ = false, pinged_ = false, pinging_ = false, closing_ = false, closed_cleanly_ = false,
       too_slow_ = false;
  TimePoint last_heard_ = now();
  TimePoint write_deadline_ = TimePoint::max(), close_deadline_ = TimePoint::max();
  uint64_t bytes_received_ = 0, bytes_sent_ = 0;
};

template <typename Stream>
WebSocketSession<Stream>::WebSocketSession(Stream& stream, const Request& request,
                                           const WebSocketLimits& limits, BodyBudget& budget)
    : socket_(stream), request_(request), limits_(limits), executor_(stream.get_executor()), share_(budget) {
  namespace websocket = boost::beast::websocket;
  socket_.read_message_max(static_cast<size_t>(std::max(limits.max_message_bytes, int64_t{1})));
  socket_.auto_fragment(false);  // write() cuts large messages itself
  socket_.control_callback([this](websocket::frame_type, boost::beast::string_view) { heard(); });
  const auto decorate = [id = request.id, protocol = limits.subprotocol](websocket::response_type& response) {
    response.set(boost::beast::http::field::server, "shoal");
    if (!id.empty() && is_field_value(id)) response.set("x-request-id", id);
    if (!protocol.empty()) response.set(boost::beast::http::field::sec_websocket_protocol, protocol);
  };
  socket_.set_option(websocket::stream_base::decorator(decorate));
}

template <typename Stream>
Task<bool> WebSocketSession<Stream>::accept() {
  namespace http = boost::beast::http;
  http::request<http::empty_body> upgrade(http::verb::get, "/", 11);
  for (const auto& [name, value] : request_.headers) upgrade.insert(name, value);
  write_deadline_ = now() + limits_.write_timeout;
  auto [error] = co_await socket_.async_accept(upgrade, kAwait);
  write_deadline_ = TimePoint::max();
  co_return !error;
}

template <typename Stream>
void WebSocketSession<Stream>::heard() {
  last_heard_ = now();
  pinged_ = false;
}

template <typename Stream>
bool WebSocketSession<Stream>::sweep(TimePoint now, std::shared_ptr<void> owner) {
  if (now >= write_deadline_) too_slow_ = true;
  if (too_slow_ || now >= close_deadline_) return false;
  if (!reading_) return true;
  const auto silent = now - last_heard_;
  if (silent >= limits_.idle_timeout) return false;
  if (silent >= limits_.idle_timeout / 2 && !pinged_ && !pinging_ && !closing_) {
    pinged_ = pinging_ = true;
    socket_.async_ping({}, [this, owner = std::move(owner)](boost::system::error_code) { pinging_ = false; });
  }
  return true;
}

template <typename Stream>
bool WebSocketSession<Stream>::make_room(std::string& data) {
  const auto size = static_cast<int64_t>(data.size());
  const bool whole = socket_.is_message_done();
  const int64_t most = std::max(size, limits_.max_message_bytes);
  const int64_t wanted = whole ? size : std::min(size + static_cast<int64_t>(kPiece), most);
  if (!share_.hold(wanted, most)) return false;
  if (!whole) data.reserve(static_cast<size_t>(share_.held()));
  return true;
}

template <typename Stream>
Task<std::optional<WebSocket::Message>> WebSocketSession<Stream>::read() {
  CHECK(!reading_, "a WebSocket has one reader at a time");
  reading_ = true;
  heard();
  share_.release();
  Message message;
  auto into = boost::asio::dynamic_buffer(message.data);
  boost::system::error_code error;
  bool has_room = true;
  do {
    const size_t most = message.data.empty() ? kFirstPiece : kPiece;
    auto [part_error, bytes] = co_await socket_.async_read_some(into, most, kAwait);
    error = part_error;
    bytes_received_ += bytes;
    heard();
    if (!error) has_room = make_room(message.data);
  } while (!error && has_room && !socket_.is_message_done());
  reading_ = false;
  if (error || !has_room) {
    std::string().swap(message.data);
    share_.release();
  }
  if (!has_room) {
    // 1009 would say that it never fits.
    co_await close(1013, "there is no memory for messages at the moment");
    fail(ErrorCode::resource_exhausted, "there is no memory for messages at the moment");
  }
  if (error == boost::beast::websocket::error::closed) {
    closed_cleanly_ = true;
    co_return std::nullopt;
  }
  if (error && closing_) co_return std::nullopt;  // close() reads the rest
  if (error) fail(ErrorCode::cancelled, "the WebSocket broke: ", error.message());
  message.text = socket_.got_text();
  // Beast checks its input, and gets none from a last frame that is empty.
  if (message.text && ends_within_character(message.data)) {
    co_await close(1007, "text must be UTF-8");
    fail(ErrorCode::cancelled, "the WebSocket broke: a text ends within a character");
  }
  co_return message;
}

template <typename Stream>
Task<> WebSocketSession<Stream>::write(bool text, std::string_view bytes) {
  CHECK(write_deadline_ == TimePoint::max(), "a WebSocket has one writer at a time");
  if (closing_) fail(ErrorCode::cancelled, "the WebSocket is closed");
  socket_.text(text);
  bool last = false;
  while (!last) {
    const std::string_view piece = bytes.substr(0, kPiece);
    bytes.remove_prefix(piece.size());
    last = bytes.empty();
    write_deadline_ = now() + limits_.write_timeout;
    auto [error, sent] = co_await socket_.async_write_some(last, boost::asio::buffer(piece), kAwait);
    write_deadline_ = TimePoint::max();
    if (error && too_slow_) fail(ErrorCode::deadline_exceeded, "the client took nothing for too long");
    if (error) fail(ErrorCode::cancelled, "the WebSocket broke: ", error.message());
    bytes_sent_ += piece.size();
  }
}

template <typename Stream>
Task<> WebSocketSession<Stream>::close(uint16_t code, std::string_view reason) {
  if (closing_ || !socket_.is_open()) co_return;
  closing_ = true;
  close_deadline_ = now() + kGoodbye;
  // RFC 6455 5.5: a control frame has 125 bytes, two of them the code. Not cut within a character.
  size_t size = std::min(reason.size(), size_t{123});
  while (size < reason.size() && size > 0 && (static_cast<unsigned char>(reason[size]) & 0xC0) == 0x80)
    --size;
  const boost::beast::websocket::close_reason why(static_cast<boost::beast::websocket::close_code>(code),
                                                  {reason.data(), size});
  auto [error] = co_await socket_.async_close(why, kAwait);
  closed_cleanly_ = !error;
  close_deadline_ = TimePoint::max();
}

}  // namespace shoal::server
