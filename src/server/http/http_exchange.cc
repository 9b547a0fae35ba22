#include "server/http/http_exchange.h"

#include <array>
#include <charconv>
#include <ctime>
#include <utility>

#include "base/error.h"

namespace shoal::server {
namespace {

using boost::asio::buffer;

constexpr std::string_view kLastChunk = "0\r\n\r\n";

std::string chunk_line(size_t bytes) {
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), bytes, 16).ptr;
  return std::string(digits.data(), end).append("\r\n");
}

}  // namespace

HttpExchange::HttpExchange(Channel& channel, const Request& request, AnswerManner manner,
                           const std::atomic<bool>& draining)
    : channel_(channel), request_(request), manner_(manner), draining_(draining) {}

HttpExchange::~HttpExchange() { stop_watching(); }

void HttpExchange::require_client() const {
  if (gone_) fail(ErrorCode::cancelled, "the client has closed the connection");
  if (too_slow_) fail(ErrorCode::deadline_exceeded, "the client took nothing for write_timeout_s");
}

// Nothing is sent if the head is invalid.
std::string HttpExchange::begin_head(const Response& response, BodyEnd end) {
  CHECK(!begun(), "an exchange has one answer");
  require_client();
  framing_.end = end;
  framing_.http_1_0 = manner_.http_1_0;
  framing_.keep_alive =
      manner_.keep_alive && end != BodyEnd::close && !draining_.load(std::memory_order_relaxed);
  std::string head = response_head(response, framing_, std::time(nullptr));
  body_allowed_ = !manner_.head_only && status_has_body(response.status);
  status_ = response.status;
  return head;
}

Task<> HttpExchange::respond(Response response) {
  const std::string head = begin_head(response, BodyEnd::length);
  if (!body_allowed_) response.body.clear();
  co_await send(head, response.body, "");
  ended_ = true;
  stop_watching();
}

Task<> HttpExchange::begin(Response response) {
  std::string head = begin_head(response, manner_.http_1_0 ? BodyEnd::close : BodyEnd::chunked);
  watch();
  if (!body_allowed_) response.body.clear();
  const bool chunk = !response.body.empty() && framing_.end == BodyEnd::chunked;
  if (chunk) head += chunk_line(response.body.size());
  const std::string_view suffix = chunk ? "\r\n" : "";
  co_await send(head, response.body, suffix);
}

Task<> HttpExchange::write(std::string_view bytes) {
  CHECK(begun() && !ended_, "pieces come between begin() and end()");
  require_client();
  // An empty chunk would be the last one.
  if (!body_allowed_ || bytes.empty()) co_return;
  const bool chunk = framing_.end == BodyEnd::chunked;
  std::string line;
  if (chunk) line = chunk_line(bytes.size());
  const std::string_view suffix = chunk ? "\r\n" : "";
  co_await send(line, bytes, suffix);
}

Task<> HttpExchange::end() {
  CHECK(begun() && !ended_, "an answer ends once");
  require_client();
  if (body_allowed_ && framing_.end == BodyEnd::chunked) co_await send(kLastChunk, "", "");
  ended_ = true;
  stop_watching();
}

Task<> HttpExchange::send(std::string_view prefix, std::string_view body, std::string_view suffix) {
  const Channel::Error error = co_await channel_.write(buffer(prefix), buffer(body), buffer(suffix));
  if (error && channel_.expired()) {
    too_slow_ = true;
  } else if (error) {
    client_left();
  } else {
    bytes_sent_ += body.size();
  }
  require_client();
}

void HttpExchange::on_gone(std::function<void()> notify) {
  notify_ = std::move(notify);
  if (!notify_) return;
  if (gone_)
    std::exchange(notify_, nullptr)();
  else if (!ended_)
    watch();
}

void HttpExchange::watch() {
  if (watcher_ != nullptr) return;
  watcher_ = std::make_shared<DisconnectWatcher>(channel_.socket(), [this] { client_left(); });
  watcher_->start();
}

void HttpExchange::stop_watching() {
  if (watcher_ != nullptr) watcher_->stop();
  watcher_ = nullptr;
}

void HttpExchange::client_left() {
  if (gone_ || ended_) return;
  gone_ = true;
  channel_.cancel();  // a write to it
  if (notify_) std::exchange(notify_, nullptr)();
}

}  // namespace shoal::server
