// Shared by the routes' tests: requests without sockets, and an engine with the built-in voice.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "server/access/error_style.h"
#include "server/http/exchange.h"
#include "server/routes/route_pattern.h"
#include "server/routes/services.h"

namespace shoal::server::testing {

// What a client received.
struct Answered {
  int status = 0;  // 0: no answer
  std::string content_type;
  Headers headers;
  std::vector<std::string>
      pieces;                  // of a streamed answer, its head's body first; a whole answer is one piece
  bool streamed = false;       // begin() rather than respond()
  bool whole = false;          // sent to its end
  std::optional<Error> error;  // that the handler threw
  std::chrono::steady_clock::duration first_byte{};  // from the start of the handler

  std::string body() const {
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    return all;
  }
  std::string header(std::string_view name) const {
    const std::string* value = headers.find(name);
    return value ? *value : "";
  }
};

// Records the answer. The client may leave, and may be slow.
class FakeExchange final : public Exchange {
 public:
  FakeExchange(Executor executor, Request request) : executor_(executor), request_(std::move(request)) {}

  Answered answered;
  std::chrono::milliseconds write_takes{0};              // each piece, to a slow reader
  std::function<bool()> holds;                           // no piece is taken while it returns true
  std::function<void(FakeExchange& exchange)> on_piece;  // called when a piece has been taken

  // The client closes the connection. On the exchange's thread.
  void leave() {
    gone_ = true;
    if (const auto notify = std::exchange(notify_, {})) notify();
  }
  bool gone() const { return gone_; }

  const Request& request() const override { return request_; }
  Executor executor() const override { return executor_; }
  Task<> respond(Response response) override {
    take_head(response);
    co_await take(std::move(response.body));
    answered.whole = true;
  }
  Task<> begin(Response head) override {
    take_head(head);
    answered.streamed = true;
    if (!head.body.empty()) co_await take(std::move(head.body));
  }
  Task<> write(std::string_view bytes) override {
    CHECK(answered.streamed && !answered.whole, "a piece outside of an answer");
    co_await take(std::string(bytes));
  }
  Task<> end() override {
    CHECK(answered.streamed && !answered.whole, "an end without an answer");
    check_there();
    answered.whole = true;
    co_return;
  }
  bool begun() const override { return answered.status != 0; }
  void on_gone(std::function<void()> notify) override {
    notify_ = std::move(notify);
    if (gone_ && notify_) std::exchange(notify_, {})();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void check_there() const {
    if (gone_) fail(ErrorCode::cancelled, "the client has gone");
  }
  void take_head(const Response& head) {
    CHECK(!begun(), "two answers to one request");
    check_there();
    answered.status = head.status;
    answered.content_type = head.content_type;
    answered.headers = head.headers;
  }
  Task<> wait(std::chrono::milliseconds time) {
    boost::asio::basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>, Executor> timer(executor_,
                                                                                              time);
    co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable_t<Executor>()));
    check_there();
  }
  Task<> take(std::string bytes) {
    check_there();
    if (write_takes.count() > 0) co_await wait(write_takes);
    while (holds && holds()) co_await wait(std::chrono::milliseconds(2));
    if (answered.pieces.empty()) answered.first_byte = Clock::now() - start_;
    answered.pieces.push_back(std::move(bytes));
    if (on_piece) on_piece(*this);
  }

  const Executor executor_;
  const Request request_;
  const Clock::time_point start_ = Clock::now();
  std::function<void()> notify_;
  bool gone_ = false;
};

// Treats a handler like the router does: an Error before the answer becomes an answer in the route's style.
inline Task<> serve(Services& services, const Route& route, FakeExchange& exchange) {
  const auto held = services.models.held();
  std::optional<Error> error;
  std::optional<HttpError> told;
  try {
    co_await route.handle(services, exchange);
  } catch (const Error& caught) {
    error = caught;
    told = http_error(caught);
  }
  exchange.answered.error = error;
  if (told && !exchange.begun() && !exchange.gone())
    co_await exchange.respond(error_response(route.errors, *told, exchange.request().id));
}

inline EngineConfig built_in_config() {
  EngineConfig config;
  config.model = std::string(SHOAL_SOURCE_DIR) + "/voice";
  config.device = "cpu";
  config.precision = Precision::float32;
  config.threads = 2;
  config.max_batch_size = 4;
  config.cache_dir = "none";
  config.references_dir = "/nonexistent";
  config.warm_up = false;
  config.request_timeout_s = 0;  // a sanitizer on a busy machine takes its time
  return config;
}

inline Request json_request(std::string path, std::string body) {
  Request request;
  request.method = "POST";
  request.path = std::move(path);
  request.headers.add("Content-Type", "application/json");
  request.body = std::move(body);
  request.id = "test-1";
  return request;
}

inline Request get_request(std::string path) {
  Request request;
  request.method = "GET";
  request.path = std::move(path);
  request.id = "test-1";
  return request;
}

// Some routes on an engine, everything on the calling thread but engine and workers.
class RouteBench {
 public:
  using Table = std::function<std::vector<Route>(const ServerConfig&)>;
  // Starts a separate engine, described by `engine`.
  explicit RouteBench(const Table& table, ServerConfig config = {}, EngineConfig engine = built_in_config())
      : own_engine_(std::make_unique<Engine>(std::move(engine))),
        config_(std::move(config)),
        services_{Models({{"shoal", own_engine_.get()}}), config_, workers_, metrics_, draining_, "{}"},
        routes_(table(config_)) {
    own_engine_->start();
  }
  // On an engine that others use too.
  RouteBench(const Table& table, Engine& engine, ServerConfig config = {})
      : config_(std::move(config)),
        services_{Models({{"shoal", &engine}}), config_, workers_, metrics_, draining_, "{}"},
        routes_(table(config_)) {}

  // On several.
  RouteBench(const Table& table, std::vector<ServedModel> models, ServerConfig config = {})
      : config_(std::move(config)),
        services_{Models(std::move(models)), config_, workers_, metrics_, draining_, "{}"},
        routes_(table(config_)) {}

  using Prepare = std::function<void(FakeExchange& exchange)>;
  Answered ask(Request request, const Prepare& prepare = {}) {
    std::vector<Request> one;
    one.push_back(std::move(request));
    return std::move(ask_all(std::move(one), prepare).front());
  }

  // All at the same time; answers in the order of the requests. As end_of_test() when one has none.
  std::vector<Answered> ask_all(std::vector<Request> requests, const Prepare& prepare = {}) {
    std::vector<std::unique_ptr<FakeExchange>> exchanges;
    size_t over = 0;
    boost::asio::io_context context(1);  // ends first: its handlers refer to the others to their last breath
    for (Request& request : requests) {
      const Route& route = route_of(request);
      request.route = route.path;
      exchanges.push_back(std::make_unique<FakeExchange>(context.get_executor(), std::move(request)));
      if (prepare) prepare(*exchanges.back());
      boost::asio::co_spawn(context.get_executor(), serve(services_, route, *exchanges.back()),
                            [&](const std::exception_ptr& thrown) {
                              EXPECT_FALSE(thrown) << "a handler threw what is not an Error";
                              ++over;
                            });
    }
    context.run_for(patience);
    if (over < exchanges.size()) end_of_test();
    std::vector<Answered> answers;
    for (const auto& exchange : exchanges) answers.push_back(std::move(exchange->answered));
    return answers;
  }

  // For handlers to end. A busy machine needs its time; CTest gives a test ten minutes.
  std::chrono::milliseconds patience = std::chrono::minutes(9);
  // Some did not. Throws, but not while a worker is at what a handler holds or has to return to it.
  [[noreturn]] void end_of_test() {
    workers_.join();
    fail(ErrorCode::internal, "handlers that did not end");
  }

  Services& services() { return services_; }
  Engine& engine() { return *services_.models.first().engine; }
  const std::vector<Route>& routes() const { return routes_; }
  std::atomic<bool>& draining() { return draining_; }

 private:
  const Route& route_of(const Request& request) const {
    const Route* found = nullptr;  // as the router finds it
    for (const Route& route : routes_) {
      if (route.method != request.method || !match_path(route.path, request.path)) continue;
      if (!found || route.path == request.path || route.path.size() > found->path.size()) found = &route;
    }
    if (found) return *found;
    fail(ErrorCode::internal, "no route ", request.method, " ", request.path);
  }

  std::unique_ptr<Engine> own_engine_;
  const ServerConfig config_;
  ServerMetrics metrics_;
  std::atomic<bool> draining_{false};
  Workers workers_{2};
  Services services_;
  const std::vector<Route> routes_;
};

}  // namespace shoal::server::testing
