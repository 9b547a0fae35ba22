// An application with a few routes that does what a test asks, and records what it saw.
#pragma once

#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "server/http/head_rules.h"
#include "server/http/transport.h"

namespace shoal::server {

class ToyApplication : public Application {
 public:
  using Timer =
      boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                        boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;

  int64_t max_body_bytes = 1 << 20;
  int64_t max_message_bytes = 64 << 10;
  std::atomic<int> gone{0};         // on_gone was called
  std::atomic<int> cancelled{0};    // a handler got Error(cancelled)
  std::atomic<int> too_slow{0};     // ... Error(deadline_exceeded)
  std::atomic<int> waiting{0};      // handlers at /wait
  std::atomic<int64_t> written{0};  // bytes that write() has returned for
  std::atomic<bool> go{false};      // /gate ends
  std::atomic<int> refusals{0};     // refuse() was called

  std::vector<std::pair<Request, RequestRecord>> records() const {
    const std::lock_guard lock(mutex_);
    return records_;
  }

  Verdict judge(Request& head, bool upgrade) override {
    head.id = "id-" + std::to_string(++requests_);
    head.route = head.path;
    Verdict verdict;
    verdict.max_body_bytes = max_body_bytes;
    if (head.path == "/refused") verdict.refusal = Response{401, "text/plain", "no key", {}};
    if (head.method == "OPTIONS") verdict.answer = Response{204, "", "", {{"allow", "GET, OPTIONS"}}};
    verdict.for_operators = head.path == "/health";
    if (upgrade && head.path.starts_with("/ws")) {
      verdict.websocket = true;
      if (has_token(head.headers, "sec-websocket-protocol", "toy")) verdict.subprotocol = "toy";
      verdict.max_body_bytes = max_message_bytes;
    }
    return verdict;
  }

  Task<> handle(Exchange& exchange) override {
    try {
      co_await dispatch(exchange);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) ++cancelled;
      if (error.code() == ErrorCode::deadline_exceeded) ++too_slow;
      throw;
    }
  }

  Task<> converse(WebSocket& socket) override {
    if (socket.request().path == "/ws/throw") fail(ErrorCode::internal, "as asked");
    if (socket.request().path == "/ws/flood") {
      const std::string piece(100 << 10, 'f');
      try {
        for (;;) {
          co_await socket.write_binary(piece);
          written += static_cast<int64_t>(piece.size());
        }
      } catch (const Error& error) {
        if (error.code() == ErrorCode::deadline_exceeded) ++too_slow;
        throw;
      }
    }
    for (;;) {
      auto message = co_await socket.read();
      if (!message) co_return;
      if (message->data == "close me") {
        co_await socket.close(1008, "as you wish");
        co_return;
      }
      if (message->text)
        co_await socket.write_text(message->data);
      else
        co_await socket.write_binary(message->data);
    }
  }

  Response refuse(Request&, int status, std::string_view message) override {
    ++refusals;
    return {status, "text/plain", std::string(message), {{"x-refused", "yes"}}};
  }

  void record(const Request& request, const RequestRecord& record) override {
    const std::lock_guard lock(mutex_);
    records_.emplace_back(request, record);
    std::string().swap(records_.back().first.body);
  }

 private:
  static Task<> sleep(Timer& timer, std::chrono::milliseconds duration) {
    timer.expires_after(duration);
    co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable_t<Executor>()));
  }

  static size_t number(const Exchange& exchange, std::string_view name, size_t otherwise) {
    const auto value = exchange.request().parameter(name);
    return value ? std::stoul(std::string(*value)) : otherwise;
  }

  // g++ 12 takes no braced list within a co_await.
  static Response answer(std::string body) {
    return {200, "text/plain", std::move(body), {{"x-request-id", "7"}}};
  }
  static Response no_content() { return {204, "", "", {}}; }

  static std::string described(const Request& request) {
    std::string text = request.method + " " + request.path + "\n";
    for (const auto& [key, value] : request.query) text += key + " -> " + value + "\n";
    return text + request.body;
  }

  Task<> dispatch(Exchange& exchange) {
    const std::string path = exchange.request().path;
    if (path == "/stream") {
      co_await stream(exchange);
    } else if (path == "/endless") {
      co_await endless(exchange);
    } else if (path == "/wait") {
      co_await wait(exchange);
    } else if (path == "/gate") {
      co_await gate(exchange);
    } else if (path == "/cut") {
      co_await exchange.begin(answer("the first part"));
      fail(ErrorCode::internal, "as asked");
    } else if (path == "/inject") {
      co_await inject(exchange);
    } else if (path == "/empty") {
      co_await exchange.respond(no_content());
    } else if (path != "/nothing") {
      co_await exchange.respond(answer(described(exchange.request())));
    }
  }

  static Task<> stream(Exchange& exchange) {
    const size_t pieces = number(exchange, "pieces", 3), bytes = number(exchange, "bytes", 4);
    co_await exchange.begin(answer("begin"));
    for (size_t i = 0; i < pieces; ++i) {
      const std::string piece(bytes, static_cast<char>('a' + i % 26));
      co_await exchange.write("");
      co_await exchange.write(piece);
    }
    co_await exchange.end();
  }

  Task<> endless(Exchange& exchange) {
    exchange.on_gone([this] { ++gone; });
    co_await exchange.begin(answer(""));
    const std::string piece(16 << 10, 'e');
    for (;;) {
      co_await exchange.write(piece);
      written += static_cast<int64_t>(piece.size());
    }
  }

  Task<> wait(Exchange& exchange) {
    Timer timer(exchange.executor());
    exchange.on_gone([this, &timer] {
      ++gone;
      timer.cancel();
    });
    ++waiting;
    co_await sleep(timer, std::chrono::milliseconds(number(exchange, "ms", 20'000)));
    --waiting;
    co_await exchange.respond(answer("waited"));
  }

  // Streams until the test lets it go.
  Task<> gate(Exchange& exchange) {
    Timer timer(exchange.executor());
    co_await exchange.begin(answer("begun."));
    ++waiting;
    for (int i = 0; i < 10'000 && !go; ++i) co_await sleep(timer, std::chrono::milliseconds(2));
    --waiting;
    co_await exchange.write("done.");
    co_await exchange.end();
  }

  static Task<> inject(Exchange& exchange) {
    int refused = 0;
    for (int i = 0; i < 4; ++i) {
      Response response = answer("body");
      if (i == 0) response.headers.add("x-evil", "a\r\nSet-Cookie: b");
      if (i == 1) response.headers.add("x evil", "a");
      if (i == 2) response.headers.add("Content-Length", "3");
      if (i == 3) response.content_type = std::string("text/plain\0", 11);
      try {
        co_await exchange.respond(std::move(response));
      } catch (const Error& error) {
        refused += error.code() == ErrorCode::internal && !exchange.begun();
      }
    }
    co_await exchange.respond(answer(std::to_string(refused)));
  }

  std::atomic<int> requests_{0};
  mutable std::mutex mutex_;
  std::vector<std::pair<Request, RequestRecord>> records_;
};

// A transport that serves the toy on a free port.
class ToyServer {
 public:
  explicit ToyServer(TransportOptions options = small_options())
      : transport(std::move(options), application) {
    transport.start();
  }
  static TransportOptions small_options() {
    TransportOptions options;
    options.threads = 2;
    return options;
  }
  uint16_t port() const { return transport.port(); }

  ToyApplication application;
  Transport transport;
};

}  // namespace shoal::server
