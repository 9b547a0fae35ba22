#include <atomic>
#include <boost/asio/detached.hpp>
#include <gtest/gtest.h>
#include <stop_token>
#include <thread>

#include "server/body/value.h"
#include "server/observe/exposition_parser_testing.h"
#include "server/routes/docs_page.h"
#include "server/routes/openapi.h"
#include "server/routes/routes_testing.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::RouteBench;

const Value& value_at(const Value& value, std::initializer_list<const char*> path) {
  const Value* found = &value;
  for (const char* name : path) {
    found = found->find(name);
    if (!found) throw std::runtime_error(concat("no member ", name));
  }
  return *found;
}

// Long work that all other work in turn waits for, as long as this lives.
class HeldTurn {
 public:
  explicit HeldTurn(Workers& workers) {
    boost::asio::co_spawn(context_.get_executor(), hold(workers), boost::asio::detached);
    context_.poll();
  }
  ~HeldTurn() {
    released_.request_stop();
    context_.run();
  }
  HeldTurn(const HeldTurn&) = delete;
  HeldTurn& operator=(const HeldTurn&) = delete;

  // After half a minute it is not: a test shall fail rather than hang.
  bool is_held() const { return held_; }

 private:
  Task<> hold(Workers& workers) {
    const auto work = [this] {
      for (int i = 0; i < 6000 && !released_.stop_requested(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      held_ = false;
    };
    co_await workers.run_in_turn(context_.get_executor(), work);
  }

  boost::asio::io_context context_{1};
  std::stop_source released_;
  std::atomic<bool> held_{true};
};

class OperatorRoutes : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    engine_ = new Engine(testing::built_in_config());
    engine_->start();
  }
  static void TearDownTestSuite() {
    delete engine_;
    engine_ = nullptr;
  }
  static std::vector<float> speak() {
    SpeechRequest request;
    request.text = "A fish.";
    request.seed = 3;
    request.max_new_tokens = 8;
    return engine_->submit(std::move(request)).read_all();
  }
  static Answered get(RouteBench& bench, const std::string& path) {
    return bench.ask(testing::get_request(path));
  }
  static Answered reload(RouteBench& bench, const std::string& body) {
    return bench.ask(testing::json_request("/v1/admin/reload", body));
  }

  static Engine* engine_;
};

Engine* OperatorRoutes::engine_ = nullptr;

TEST_F(OperatorRoutes, HealthHasTheFieldsOfOlderServers) {
  RouteBench bench(operator_routes, *engine_);
  const Answered answered = get(bench, "/health");
  EXPECT_EQ(answered.status, 200);
  EXPECT_EQ(answered.content_type, "application/json");
  const Value health = read_json(answered.body());
  EXPECT_EQ(value_at(health, {"status"}), Value{std::string("ok")});
  EXPECT_EQ(value_at(health, {"state"}), Value{std::string("ready")});
  EXPECT_EQ(value_at(health, {"device"}), Value{std::string("cpu")});
  EXPECT_EQ(value_at(health, {"weights"}), value_at(health, {"precision"}));
  EXPECT_EQ(value_at(health, {"kv_precision"}), value_at(health, {"precision"}));
  EXPECT_TRUE(value_at(health, {"vram"}).is_null());
  EXPECT_EQ(value_at(health, {"model_loaded"}), Value{true});
  EXPECT_EQ(value_at(health, {"queue"}), Value{int64_t{0}});
  EXPECT_GE(*value_at(health, {"uptime_s"}).as<double>(), 0);
  EXPECT_NE(*value_at(health, {"version"}).as<std::string>(), "");
  EXPECT_EQ(get(bench, "/ready").status, 200);
}

TEST_F(OperatorRoutes, BeforeTheModelIsLoadedTheServerIsHealthyButNotReady) {
  Engine unborn(testing::built_in_config());
  RouteBench bench(operator_routes, unborn);
  const Answered health = get(bench, "/health");
  EXPECT_EQ(health.status, 200);
  EXPECT_EQ(value_at(read_json(health.body()), {"model_loaded"}), Value{false});
  EXPECT_TRUE(value_at(read_json(health.body()), {"model"}).is_null());
  const Answered ready = get(bench, "/ready");
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(ready.header("retry-after"), "1");
  EXPECT_EQ(testing::Exposition(get(bench, "/metrics").body()).value("shoal_ready"), 0);
  EXPECT_EQ(get(bench, "/v1/stats").status, 200);
  EXPECT_EQ(get(bench, "/test/gpu").status, 503);
  EXPECT_EQ(reload(bench, "").status, 503);
}

TEST_F(OperatorRoutes, ADrainingServerIsNotReady) {
  RouteBench bench(operator_routes, *engine_);
  bench.draining() = true;
  EXPECT_EQ(get(bench, "/ready").status, 503);
  EXPECT_EQ(value_at(read_json(get(bench, "/ready").body()), {"state"}), Value{std::string("draining")});
  EXPECT_EQ(get(bench, "/health").status, 200);
  EXPECT_EQ(testing::Exposition(get(bench, "/metrics").body()).value("shoal_ready"), 0);
  for (const Route& route : bench.routes())
    EXPECT_EQ(route.answers_while_draining, route.path == "/metrics") << route.path;
}

TEST_F(OperatorRoutes, MetricsAreValidAndChange) {
  RouteBench bench(operator_routes, *engine_);
  bench.services().transport = [] { return TransportStatistics{.connections = 3, .accepted = 7}; };
  const Answered answered = get(bench, "/metrics");
  EXPECT_EQ(answered.content_type, "text/plain; version=0.0.4; charset=utf-8");
  const testing::Exposition before(answered.body());
  EXPECT_EQ(before.value("shoal_ready"), 1);
  EXPECT_EQ(before.value("shoal_http_connections"), 3);
  speak();
  const testing::Exposition after(get(bench, "/metrics").body());
  const auto rise = [&](const std::string& name, const testing::Exposition::Labels& labels = {}) {
    return after.value(name, labels) - before.value(name, labels);
  };
  EXPECT_EQ(rise("shoal_engine_requests_total", {{"outcome", "completed"}}), 1);
  EXPECT_EQ(rise("shoal_first_audio_seconds_count"), 1);
  EXPECT_GT(rise("shoal_frames_total"), 0);
  EXPECT_GT(rise("shoal_audio_seconds_total"), 0);
  EXPECT_GT(rise("shoal_batch_size_count"), 0);
}

TEST_F(OperatorRoutes, UsageIsToldByKey) {
  RouteBench bench(operator_routes, *engine_);
  Usage& usage = bench.services().usage;
  usage.set_limits({{"ann", {0, 100, 0}}});
  usage.add_request("ann");
  usage.add_characters("ann", 40);
  usage.add_sound("ann", 2.5);
  usage.add_request("bob");
  const Value none = read_json(get(bench, "/v1/usage").body());
  EXPECT_EQ(value_at(none, {"requests"}), Value{int64_t{0}}) << "of whoever asks";
  const std::string all = get(bench, "/v1/admin/usage").body();
  EXPECT_NE(all.find(R"("key":"ann","requests":1,"characters":40,"audio_s":2.5)"), std::string::npos) << all;
  EXPECT_NE(all.find(R"("characters_per_minute":{"limit":100,"left":60,"reset_s":)"), std::string::npos);
  const testing::Exposition text(get(bench, "/metrics").body());
  EXPECT_EQ(text.value("shoal_key_characters_total", {{"key", "ann"}}), 40);
  EXPECT_EQ(text.value("shoal_key_audio_seconds_total", {{"key", "ann"}}), 2.5);
  EXPECT_EQ(text.value("shoal_key_requests_total"), 2);
}

TEST_F(OperatorRoutes, MetricsCanBeDisabled) {
  ServerConfig config;
  config.metrics = false;
  for (const Route& route : operator_routes(config)) EXPECT_NE(route.path, "/metrics");
}

TEST_F(OperatorRoutes, KeysProtectStatisticsButNotHealthChecks) {
  for (const Route& route : operator_routes(ServerConfig{})) {
    const bool open = route.path == "/health" || route.path == "/ready" || route.path == "/docs" ||
                      route.path == "/openapi.json";
    const bool admin = route.path.starts_with("/v1/admin/");
    EXPECT_EQ(route.access, open ? Access::open : admin ? Access::admin : Access::client) << route.path;
  }
}

TEST_F(OperatorRoutes, StatisticsAsJson) {
  speak();
  RouteBench bench(operator_routes, *engine_);
  const Value stats = read_json(get(bench, "/v1/stats").body());
  EXPECT_EQ(value_at(stats, {"state"}), Value{std::string("ready")});
  EXPECT_GE(*value_at(stats, {"queue", "running"}).as<int64_t>(), 0);
  EXPECT_GT(*value_at(stats, {"requests", "completed"}).as<int64_t>(), 0);
  EXPECT_GT(*value_at(stats, {"audio_s"}).as<double>(), 0);
  EXPECT_GT(*value_at(stats, {"first_audio_s", "mean"}).as<double>(), 0);
  EXPECT_GE(*value_at(stats, {"first_audio_s", "p95"}).as<double>(),
            *value_at(stats, {"first_audio_s", "p50"}).as<double>());
  EXPECT_GT(*value_at(stats, {"kv", "pages"}).as<int64_t>(), 0);
  EXPECT_GT(*value_at(stats, {"memory", "codec"}).as<int64_t>(), 0);
  EXPECT_TRUE(value_at(stats, {"device_memory"}).is_null());
  const Value workers = read_json(get(bench, "/v1/workers").body());
  const Value::Array& all = *value_at(workers, {"workers"}).as<Value::Array>();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(value_at(all[0], {"id"}), Value{int64_t{0}});
  EXPECT_EQ(value_at(all[0], {"device"}), value_at(stats, {"device"}));
}

TEST_F(OperatorRoutes, TheSelfTestRunsWithinTheLimits) {
  RouteBench bench(operator_routes, *engine_);
  for (const Route& route : bench.routes())
    EXPECT_EQ(route.takes_slot, route.path == "/test/gpu") << route.path;
  const Answered answered = get(bench, "/test/gpu");
  EXPECT_EQ(answered.status, 200);
  const Value test = read_json(answered.body());
  EXPECT_EQ(value_at(test, {"device"}), Value{std::string("cpu")});
  EXPECT_EQ(value_at(test, {"mps_available"}), Value{false});
  EXPECT_EQ(value_at(test, {"gpu_memory_allocated_mb"}), Value{0.0});
  EXPECT_EQ(value_at(test, {"test_tensor_device"}), value_at(test, {"pipeline_device"}));
  EXPECT_EQ(test.find("error"), nullptr);
}

TEST_F(OperatorRoutes, ReloadKeepsTheSoundAndAFailureKeepsTheModel) {
  Engine engine(testing::built_in_config());
  engine.start();
  RouteBench bench(operator_routes, engine);
  const auto sound = [&] {
    SpeechRequest request;
    request.text = "A fish.";
    request.seed = 3;
    request.max_new_tokens = 8;
    return engine.submit(std::move(request)).read_all();
  };
  const std::vector<float> before = sound();
  EXPECT_EQ(reload(bench, "").status, 200);
  EXPECT_TRUE(sound() == before);
  const Answered smaller = reload(bench, R"({"max_batch_size":2})");
  EXPECT_EQ(smaller.status, 200) << smaller.body();
  EXPECT_EQ(engine.config().max_batch_size, 2);
  EXPECT_TRUE(sound() == before);
  for (const auto& [body, status] :
       std::vector<std::pair<std::string, int>>{{R"({"model":"/nowhere"})", 404},
                                                {R"({"device":"abacus"})", 400},
                                                {R"({"precision":"int1"})", 400},
                                                {R"({"max_batch_size":0})", 400},
                                                {R"({"max_batch_size":1e308})", 400},
                                                {R"({"modle":"x"})", 400},
                                                {"[", 400}}) {
    EXPECT_EQ(reload(bench, body).status, status) << body;
    EXPECT_TRUE(sound() == before);
  }
  std::vector<Request> two;
  for (int i = 0; i < 2; ++i) two.push_back(testing::json_request("/v1/admin/reload", "{}"));
  const std::vector<Answered> answers = bench.ask_all(std::move(two));
  EXPECT_EQ(answers[0].status, 200);
  EXPECT_EQ(answers[1].status, 409);
  EXPECT_EQ(reload(bench, "{}").status, 200);
}

TEST_F(OperatorRoutes, ReloadDoesNotWaitForLongEncodings) {
  Engine engine(testing::built_in_config());
  engine.start();
  RouteBench bench(operator_routes, engine);
  const HeldTurn turn(bench.services().workers);
  EXPECT_EQ(reload(bench, "").status, 200);
  EXPECT_TRUE(turn.is_held());
}

TEST_F(OperatorRoutes, DocsShowEveryRouteWithItsFields) {
  const ServerConfig config{.admin_key = "secret"};
  std::vector<Route> table = operator_routes(config);
  for (const auto part : {fish_routes, kokoro_routes, reference_routes})
    for (Route& route : part(config)) table.push_back(std::move(route));
  const std::string page = docs_page(openapi_document(table, config));
  for (const Route& route : table) {
    EXPECT_NE(page.find("<code>" + route.path + "</code>"), std::string::npos) << route.path;
    for (const FieldDoc& field : route.doc.body)
      EXPECT_NE(page.find("<td><code>" + field.name + "</code>"), std::string::npos) << field.name;
  }
  EXPECT_NE(page.find("<code>references[].audio</code>"), std::string::npos);
  EXPECT_NE(page.find("<code>normalization_options.normalize</code>"), std::string::npos);
  EXPECT_NE(page.find("<code>voice.id</code>"), std::string::npos);
  EXPECT_NE(page.find("<code>?format=</code>"), std::string::npos);
  EXPECT_NE(page.find("<p>or array, at most <code>64</code>: names of voices"), std::string::npos);
  EXPECT_NE(page.find("<p>Body, if any: <code>*/*</code>"), std::string::npos);
  EXPECT_NE(page.find("admin key"), std::string::npos);
  EXPECT_EQ(page.find("secret"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
}

TEST_F(OperatorRoutes, DocumentTextIsEscaped) {
  const std::string page =
      docs_page(R"({"info":{"title":"<b>"},"paths":{"/<i>":{"get":{"summary":"\"<u>&"}}}})");
  EXPECT_EQ(page.find("<b>"), std::string::npos);
  EXPECT_EQ(page.find("<i>"), std::string::npos);
  EXPECT_EQ(page.find("<u>"), std::string::npos);
  EXPECT_NE(page.find("&quot;&lt;u&gt;&amp;"), std::string::npos);
}

TEST_F(OperatorRoutes, TheDocumentAndItsPageAreServed) {
  RouteBench bench(operator_routes, *engine_);
  bench.services().openapi = openapi_document(bench.routes(), ServerConfig{});
  EXPECT_EQ(get(bench, "/openapi.json").body(), bench.services().openapi);
  const Answered page = get(bench, "/docs");
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_NE(page.body().find("/v1/stats"), std::string::npos);
  EXPECT_EQ(get(bench, "/docs").body(), page.body());
}

}  // namespace
}  // namespace shoal::server
