#include "fleet/balancer.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "fleet/runtime_socket.h"

namespace shoal::fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

BalancerPlan two_workers(Strategy strategy) {
  return {.strategy = strategy,
          .workers = {{.name = "w1", .port = 8001}, {.name = "w2", .port = 8002}},
          .repeatable = {"/v1/tts", "/v1/audio/speech"}};
}

template <typename Action>
void expect_bad_argument(const Action& action, const std::string& part) {
  try {
    action();
    ADD_FAILURE() << "accepted; expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.message(), HasSubstr(part));
  }
}

TEST(BalancerConfig, OfTheDefaultStrategy) {
  EXPECT_EQ(haproxy_config(two_workers(Strategy::least_connections)), R"(global
    nbthread 1
    fd-hard-limit 65536
    tune.bufsize 65536
    hard-stop-after 30s

defaults
    mode http
    option http-no-delay
    timeout connect 2s
    timeout client 75s
    timeout server 600s
    timeout tunnel 1h
    timeout http-request 60s
    timeout http-keep-alive 75s
    timeout check 1s
    http-error status 503 content-type application/json string '{"error":{"message":"no worker is ready","type":"server_error","param":null,"code":"unavailable"}}'

frontend speech
    bind 127.0.0.1:8000
    acl is_ready nbsrv(workers) ge 1
    acl is_asked path /ready
    http-request return status 503 content-type application/json lf-string '{"ready":false,"workers":0}' if is_asked METH_GET !is_ready
    http-request return status 200 content-type application/json lf-string '{"ready":true,"workers":%[nbsrv(workers)]}' if is_asked METH_GET
    http-request set-header x-request-id %[uuid()] if !{ req.hdr(x-request-id) -m reg ^[A-Za-z0-9._-]{1,64}$ }
    default_backend workers

backend workers
    balance leastconn
    http-reuse never
    retry-on conn-failure empty-response 503
    retries 10
    option redispatch 1
    acl may_repeat path /v1/tts /v1/audio/speech
    http-request disable-l7-retry if !METH_GET !may_repeat
    option httpchk
    http-check send meth GET uri /ready
    http-check expect status 200
    default-server check inter 500ms fall 2 rise 1 observe layer4 error-limit 1 on-error mark-down
    server w1 127.0.0.1:8001
    server w2 127.0.0.1:8002
)");
}

TEST(BalancerConfig, PathsWithANameStandForAllBelow) {
  BalancerPlan plan = two_workers(Strategy::least_connections);
  plan.repeatable = {"/v1/tts", "/v1/say/{voice}", "/v1/say/{voice}/stream"};
  plan.forms = {{{"/v1/say/{voice}"}, "full", "absent"}};
  const std::string config = haproxy_config(plan);
  EXPECT_THAT(config, HasSubstr("    acl may_repeat path /v1/tts\n    acl may_repeat path_beg /v1/say/\n"));
  EXPECT_THAT(config, HasSubstr("lf-string 'absent' if { path_beg /v1/say/ } !is_ready"));
}

TEST(BalancerConfig, StrategiesDiffer) {
  const std::string round_robin = haproxy_config(two_workers(Strategy::round_robin));
  EXPECT_THAT(round_robin, AllOf(HasSubstr("balance roundrobin\n"), Not(HasSubstr("voice"))));
  const std::string voice = haproxy_config(two_workers(Strategy::voice));
  EXPECT_THAT(voice, AllOf(HasSubstr("balance hash var(txn.voice)\n"), HasSubstr("hash-balance-factor 125\n"),
                           HasSubstr("req.hdr(x-shoal-voice)\n"), HasSubstr("json_query('$.voice')")));
}

TEST(BalancerConfig, PagesOfAnAddressOfTheNetworkAreItsOwn) {
  BalancerPlan plan = two_workers(Strategy::voice);
  EXPECT_THAT(haproxy_config(plan), Not(HasSubstr("origin")));
  parse_balancer_address("10.1.2.3:80", plan);
  EXPECT_THAT(haproxy_config(plan), AllOf(HasSubstr("bind 10.1.2.3:80\n"), HasSubstr("del-header origin")));
}

TEST(BalancerConfig, HostsAreServersWhoseSilenceEndsConnections) {
  BalancerPlan plan = two_workers(Strategy::voice);
  plan.hosts = {{"gpu7", {"10.0.0.7", 8080}, 2}};
  EXPECT_THAT(haproxy_config(plan),
              AllOf(HasSubstr("    option srvtcpka\n"),
                    HasSubstr(concat("    server gpu7 10.0.0.7:8080 ", kHealth, " weight 2 tcp-ut 10s\n"))));
}

TEST(BalancerConfig, WhatComesFromAnotherFleetIsForItsOwnWorkers) {
  BalancerPlan plan = two_workers(Strategy::voice);
  EXPECT_THAT(haproxy_config(plan), Not(HasSubstr("x-shoal-fleet")));
  plan.hosts.emplace();
  EXPECT_THAT(haproxy_config(plan), AllOf(HasSubstr("use_backend own if { var(txn.fleets) -m found }\n"),
                                          HasSubstr("server w2 127.0.0.1:8002 track workers/w2\n")));
  plan.workers.clear();
  EXPECT_THAT(haproxy_config(plan),
              AllOf(HasSubstr("var(txn.fleets) -m int ge 8"), Not(HasSubstr("backend own"))));
}

TEST(BalancerConfig, AFullOrAbsentFleetAnswersInTheFormOfTheRoute) {
  BalancerPlan plan = two_workers(Strategy::least_connections);
  plan.forms = {{.paths = {"/a", "/b"}, .full = "{\"f\":1}", .absent = "{\"a\":1}"}, {.paths = {"/c"}}};
  const std::string unlimited = haproxy_config(plan);
  EXPECT_THAT(unlimited, AllOf(HasSubstr("return status 503"), Not(HasSubstr("return status 429"))));
  EXPECT_THAT(unlimited, HasSubstr("lf-string '{\"a\":1}' if { path /a /b } !is_ready !METH_OPTIONS\n"));
  plan.most_inside = 7;
  EXPECT_THAT(haproxy_config(plan),
              HasSubstr("lf-string '{\"f\":1}' if { path /a /b } { be_conn(workers) ge 7 } !METH_OPTIONS\n"));
}

TEST(BalancerConfig, NonsenseIsRefused) {
  BalancerPlan plan;
  for (const char* listen :
       {"", ":", "8000", "localhost:8000", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536",
        "127.0.0.1:8000x", "127.0.0.1:-1", "[::1]:8000", "0.0.0.0:1\n    bind 0.0.0.0:2"})
    expect_bad_argument([&] { parse_balancer_address(listen, plan); },
                        "listen: expected an IPv4 address and a port");
  for (const char* name : {"", "leastconn", "Voice", "random"})
    expect_bad_argument([&] { parse_strategy(name); },
                        "strategy: expected least-connections, round-robin or voice");
}

TEST(Balancer, WithoutHaproxyItSaysHowToGetIt) {
  for (const char* name : {"/no/such/haproxy", "no-such-haproxy", ""})
    expect_bad_argument([&] { find_haproxy(name); }, "apt-get install haproxy");
}

TEST(Balancer, AProgramThatRefusesTheConfigurationIsRefused) {
  expect_bad_argument([] { Balancer("/bin/false", ""); },
                      "/bin/false does not accept the configuration: exit code 1");
}

TEST(Balancer, HaproxyAcceptsEveryStrategyAndNoNonsense) {
  std::string program;
  try {
    program = find_haproxy("haproxy");
  } catch (const Error&) {
    GTEST_SKIP() << "HAProxy is not installed";
  }
  for (const Strategy strategy : {Strategy::least_connections, Strategy::round_robin, Strategy::voice})
    EXPECT_NO_THROW(Balancer(program, haproxy_config(two_workers(strategy))));
  const RuntimeSocket socket;
  BalancerPlan plan = two_workers(Strategy::voice);
  plan.runtime_socket = socket.path();
  EXPECT_THAT(haproxy_config(plan), HasSubstr("stats socket " + socket.path() + " mode 600 level admin\n"));
  plan.ready_socket = socket.ready_path();
  plan.host = "0.0.0.0";
  plan.most_inside = 7;
  plan.forms = {{.paths = {"/a"}, .full = concat("{\"id\":\"", kRequestId, "\"}"), .absent = "{}"}};
  plan.fleet_port = 9000;
  plan.fleet_paths = {"/health"};
  plan.hosts = {{"10.0.0.7:8080", {"10.0.0.7", 8080}}, {"gpu-8.b", {"10.0.0.8", 80}, 256}};
  EXPECT_NO_THROW(Balancer(program, haproxy_config(plan)));
  plan.workers.clear();
  EXPECT_NO_THROW(Balancer(program, haproxy_config(plan)));
  plan.hosts->clear();
  EXPECT_NO_THROW(Balancer(program, haproxy_config(plan)));
  EXPECT_FALSE(socket.replace_certificate("a.pem", "b")) << "nobody listens";
  EXPECT_FALSE(socket.let_in("w1", true)) << "nobody listens";
  expect_bad_argument([&] { Balancer(program, "global\n    nonsense\n"); }, "unknown keyword 'nonsense'");
}

}  // namespace
}  // namespace shoal::fleet
