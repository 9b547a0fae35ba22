#include "fleet/routes/fleet_server.h"

#include <gmock/gmock.h>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "server/body/members_testing.h"
#include "server/http/raw_client_testing.h"
#include "server/http/transport.h"

namespace shoal::fleet {
namespace {

using server::Answer;
using server::Value;
using server::testing::at;
using server::testing::text_at;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What a worker answers: its figures, if the key is right.
class ToyWorker : public server::Application {
 public:
  server::Verdict judge(server::Request& head, bool) override {
    const std::string* key = head.headers.find("authorization");
    if (head.path != "/health" && (!key || *key != "Bearer sesame"))
      return {.refusal = server::Response{.status = 401, .headers = {}}};
    return {};
  }
  server::Task<> handle(server::Exchange& exchange) override {
    server::Response response{.content_type = "application/json",
                              .body = exchange.request().path == "/health"
                                          ? R"({"status":"ok","state":"ready","device":"cpu","queue":2})"
                                          : R"({"steps":3,"queue":{"running":1,"waiting":2}})",
                              .headers = {}};
    co_await exchange.respond(std::move(response));
  }
  server::Task<> converse(server::WebSocket& socket) override { return socket.close(1011, ""); }
  server::Response refuse(server::Request&, int status, std::string_view) override {
    return {.status = status, .headers = {}};
  }
  void record(const server::Request&, const server::RequestRecord&) override {}
};

class FleetRoutes : public ::testing::Test {
 protected:
  void SetUp() override {
    worker_transport_.start();
    const int port = worker_transport_.port();
    desk_.publish(
        {.workers =
             {{.name = "w1", .device = "cpu", .port = port, .state = WorkerState::ready, .restarts = 2},
              {.name = "w2", .device = "cuda:1", .port = 1, .last_error = "signal 9 (Killed)"}},
         .rolling = RollingStatus{"restart", "done", {"w1"}}});
    transport_.start();
    fleet_ = std::thread([this] {
      while (!ends_) {
        desk_.obey([this](const Order& order) { take(order); });
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  void TearDown() override {
    ends_ = true;
    fleet_.join();
    desk_.close();
    transport_.drain(std::chrono::milliseconds(0));
  }

  Answer ask(const std::string& method, const std::string& path, const std::string& key = "sesame",
             const std::string& body = "", const std::string& more = "") const {
    server::RawClient client(transport_.port());
    client.send(concat(method, " ", path, " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ", body.size(),
                       key.empty() ? "" : "\r\nAuthorization: Bearer " + key, "\r\n", more, "\r\n", body));
    return client.read_answer();
  }
  int status(const std::string& method, const std::string& path, const std::string& key = "sesame",
             const std::string& body = "") const {
    return ask(method, path, key, body).status;
  }
  Value told(const std::string& path) const { return server::read_json(ask("GET", path).body); }
  std::vector<std::string> orders() {
    const std::lock_guard lock(mutex_);
    return orders_;
  }

 private:
  void take(const Order& order) {
    const std::lock_guard lock(mutex_);
    if (order.worker == "w9") fail(ErrorCode::not_found, "worker: there is no w9");
    std::string text = concat(static_cast<int>(order.what), " ", order.worker);
    for (const auto& [name, value] : order.settings) text += concat(" ", name, "=", value);
    orders_.push_back(text);
  }

  std::mutex mutex_;
  std::vector<std::string> orders_;
  std::atomic<bool> ends_{false};
  std::thread fleet_;

 protected:
  ToyWorker worker_;
  server::Transport worker_transport_{{}, worker_};
  Desk desk_;
  FleetServices services_{
      .desk = desk_,
      .gate = server::Gate(server::ApiKeys("sesame", ""), server::ApiKeys("boss", ""), "", "127.0.0.1:1"),
      .sum = [](const std::vector<Value>& all) { return all.front(); },
      .patience = std::chrono::milliseconds(60'000)};
  FleetServer server_{services_};
  server::Transport transport_{{}, server_};
};

TEST_F(FleetRoutes, TellHowEachWorkerIs) {
  const Value all = told("/v1/workers");
  const auto& workers = *all.find("workers")->as<Value::Array>();
  ASSERT_EQ(workers.size(), 2u);
  EXPECT_EQ(text_at(workers[0], {"state"}), "ready");
  EXPECT_EQ(at(workers[0], {"load"}), Value{int64_t{3}});
  EXPECT_EQ(at(workers[0], {"restarts"}), Value{int64_t{2}});
  EXPECT_EQ(text_at(workers[1], {"last_error"}), "signal 9 (Killed)");
  EXPECT_EQ(text_at(workers[1], {"device"}), "cuda:1");
  EXPECT_TRUE(at(workers[1], {"load"}).is_null());
  EXPECT_EQ(text_at(all, {"rolling", "outcome"}), "done");
  const Value figures = told("/v1/stats");
  EXPECT_EQ(at(figures, {"steps"}), Value{int64_t{3}});
  EXPECT_EQ(at(figures, {"workers", "ready"}), Value{int64_t{1}});
  EXPECT_EQ(at(figures, {"workers", "counted"}), Value{int64_t{1}});
}

TEST_F(FleetRoutes, FiguresSayHowManyWorkersTheyCount) {
  const int port = worker_transport_.port();
  desk_.publish({.workers = {{.name = "w1", .port = port, .state = WorkerState::ready},
                             {.name = "w2", .port = 1, .state = WorkerState::ready}}});  // gives no answer
  const Value figures = told("/v1/stats");
  EXPECT_EQ(at(figures, {"workers", "ready"}), Value{int64_t{2}});
  EXPECT_EQ(at(figures, {"workers", "counted"}), Value{int64_t{1}});
}

TEST_F(FleetRoutes, HealthIsThatOfAServerWithCounts) {
  for (const char* path : {"/health", "/v1/health"}) {
    const Value health = told(path);
    EXPECT_EQ(text_at(health, {"status"}), "ok");
    EXPECT_EQ(at(health, {"workers", "ready"}), Value{int64_t{1}});
    EXPECT_EQ(at(health, {"workers", "total"}), Value{int64_t{2}});
    EXPECT_EQ(text_at(health, {"device"}), "cpu");
    EXPECT_EQ(at(health, {"queue"}), Value{int64_t{2}});
  }
  EXPECT_EQ(status("GET", "/ready", ""), 200);
  desk_.publish({.workers = {{.name = "w1", .state = WorkerState::starting}}});
  EXPECT_EQ(status("GET", "/health", ""), 503);
  EXPECT_EQ(status("GET", "/ready", ""), 503);
  EXPECT_EQ(status("GET", "/v1/stats"), 503);
}

TEST_F(FleetRoutes, PrometheusFindsTheWorkersAndReadsTheFleet) {
  EXPECT_EQ(ask("GET", "/http_sd").body,
            concat(R"([{"targets":["127.0.0.1:)", worker_transport_.port(),
                   R"("],"labels":{"worker":"w1","device":"cpu"}},{"targets":["127.0.0.1:1"],)"
                   R"("labels":{"worker":"w2","device":"cuda:1"}}])"));
  const std::string metrics = ask("GET", "/metrics").body;
  for (const char* line :
       {"shoal_fleet_workers{state=\"ready\"} 1\n", "shoal_fleet_workers{state=\"waiting\"} 1\n",
        "shoal_fleet_ready 1\n", "shoal_fleet_worker_ready{worker=\"w2\"} 0\n",
        "# TYPE shoal_fleet_worker_restarts_total counter\n",
        "shoal_fleet_worker_restarts_total{worker=\"w1\"} 2\n"})
    EXPECT_THAT(metrics, HasSubstr(line));
}

TEST_F(FleetRoutes, KeysOpenTheSameDoorsAsThoseOfAServer) {
  for (const char* path : {"/v1/workers", "/v1/stats", "/metrics", "/http_sd", "/v1/health"}) {
    EXPECT_EQ(status("GET", path, ""), 401) << path;
    EXPECT_EQ(status("GET", path, "boss"), 401) << path;
  }
  EXPECT_EQ(status("GET", "/health", ""), 200);
  EXPECT_EQ(status("POST", "/v1/admin/restart", ""), 401);
  EXPECT_EQ(status("POST", "/v1/admin/restart", "sesame"), 401);
  EXPECT_EQ(status("POST", "/v1/admin/restart", "boss"), 202);
  EXPECT_EQ(ask("POST", "/v1/admin/restart", "boss", "", "Origin: http://elsewhere.example\r\n").status, 403);
  EXPECT_EQ(status("GET", "/v1/admin/restart", "boss"), 405);
  EXPECT_EQ(status("POST", "/v1/admin/nothing", "boss"), 404);
}

TEST_F(FleetRoutes, OrdersReachTheFleetAndItsAnswerComesBack) {
  EXPECT_EQ(status("POST", "/v1/admin/drain", "boss", R"({"worker":"w1"})"), 200);
  EXPECT_EQ(status("POST", "/v1/admin/resume", "boss", R"({"worker":"w1"})"), 200);
  EXPECT_EQ(status("POST", "/v1/admin/restart", "boss", R"({"worker":"w2"})"), 202);
  EXPECT_EQ(status("POST", "/v1/admin/restart", "boss"), 202);
  EXPECT_EQ(status("POST", "/v1/admin/reload", "boss", R"({"model":"a","max_queue":7,"strict":true})"), 202);
  EXPECT_THAT(orders(), ElementsAre("0 w1", "1 w1", "2 w2", "2 ", "3  max_queue=7 model=a strict=true"));
  EXPECT_EQ(status("POST", "/v1/admin/drain", "boss", R"({"worker":"w9"})"), 404);
}

TEST_F(FleetRoutes, NonsenseIsRefusedBeforeItReachesTheFleet) {
  for (const char* body :
       {"", "{}", "[]", "w1", R"({"worker":7})", R"({"worker":""})", R"({"worker":"w1","x":1})"})
    EXPECT_EQ(status("POST", "/v1/admin/drain", "boss", body), 400) << body;
  for (const char* body : {"[]", R"({"model":null})", R"({"model":["a"]})", "{"})
    EXPECT_EQ(status("POST", "/v1/admin/reload", "boss", body), 400) << body;
  EXPECT_EQ(ask("GET", "/v1/workers", "sesame", "",
                "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")
                .status,
            400);
  EXPECT_TRUE(orders().empty());
}

TEST(FleetRoutesWithoutAnAdminKey, HaveNoOrders) {
  Desk desk;
  FleetServices services{.desk = desk, .gate = server::Gate({}, {}, "", "127.0.0.1:1"), .sum = {}};
  FleetServer fleet(services);
  server::Request request{.method = "POST", .path = "/v1/admin/restart"};
  const server::Verdict verdict = fleet.judge(request, false);
  ASSERT_TRUE(verdict.refusal);
  EXPECT_EQ(verdict.refusal->status, 404);
}

}  // namespace
}  // namespace shoal::fleet
