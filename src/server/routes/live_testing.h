// A WebSocket without a socket, and what its client receives.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "server/routes/routes_testing.h"
#include "server/routes/signal.h"

namespace shoal::server::testing {

// Records what the server sends. The test pushes the client's messages before and during the conversation.
class FakeWebSocket final : public WebSocket {
 public:
  explicit FakeWebSocket(Request request) : request_(std::move(request)) {}

  std::vector<Message> sent;
  std::optional<uint16_t> closed_with;                  // by the server
  std::chrono::milliseconds write_takes{0};             // each message, to a slow reader
  std::function<void(const Message& message)> on_sent;  // called when a message has been sent

  void say(std::string json) { say({.text = true, .data = std::move(json)}); }
  void say(Message message) {
    incoming_.push_back(std::move(message));
    arrived_.notify();
  }
  // A close handshake, after the earlier messages.
  void hang_up() {
    hung_up_ = true;
    arrived_.notify();
  }
  // The connection breaks.
  void leave() {
    gone_ = true;
    arrived_.notify();
  }

  const Request& request() const override { return request_; }
  Executor executor() const override { return context_.get_executor(); }
  boost::asio::io_context& context() { return context_; }
  Task<std::optional<Message>> read() override {
    CHECK(!std::exchange(reading_, true), "two readers");
    while (incoming_.empty() && !hung_up_ && !gone_) co_await arrived_.wait();
    reading_ = false;
    check_there();
    if (incoming_.empty()) co_return std::nullopt;
    Message message = std::move(incoming_.front());
    incoming_.pop_front();
    co_return message;
  }
  Task<> write_text(std::string_view text) override {
    return take({.text = true, .data = std::string(text)});
  }
  Task<> write_binary(std::string_view bytes) override {
    return take({.text = false, .data = std::string(bytes)});
  }
  Task<> close(uint16_t code, std::string_view) override {
    CHECK(!writing_, "closed while a message is written");
    check_there();
    closed_with = code;
    incoming_.clear();
    hang_up();
    co_return;
  }

 private:
  void check_there() const {
    if (gone_) fail(ErrorCode::cancelled, "the client has gone");
  }
  Task<> take(Message message) {
    CHECK(!std::exchange(writing_, true), "two writers");
    check_there();
    Signal taken(executor());
    if (write_takes.count() > 0) co_await taken.wait(write_takes);
    writing_ = false;
    check_there();
    CHECK(!closed_with, "a message after the close");
    sent.push_back(message);
    if (on_sent) on_sent(message);
  }

  const Request request_;
  mutable boost::asio::io_context context_{1};
  Signal arrived_{executor()};
  std::deque<Message> incoming_;
  bool hung_up_ = false, gone_ = false, reading_ = false, writing_ = false;
};

// Runs the only route of `bench`, a WebSocket, against a client played by `act`: it sends the first messages
// and sets on_sent. Returns the handler's exception. As RouteBench::end_of_test() when it does not end.
inline std::optional<Error> converse(RouteBench& bench, FakeWebSocket& socket) {
  std::optional<Error> thrown;
  bool over = false;
  boost::asio::co_spawn(socket.executor(), bench.routes().front().converse(bench.services(), socket),
                        [&](const std::exception_ptr& error) {
                          over = true;
                          try {
                            if (error) std::rethrow_exception(error);
                          } catch (const Error& caught) {
                            thrown = caught;
                          }
                        });
  socket.context().run_for(bench.patience);
  if (!over) bench.end_of_test();
  return thrown;
}

}  // namespace shoal::server::testing
