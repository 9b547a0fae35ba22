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
  return {.strategy = strategy, .workers = {{.name = "w1", .port = 8001}, {.name = "w2", .port = 8002}}};
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
    monitor-uri /ready
    monitor fail if !is_ready
    default_backend workers

backend workers
    balance leastconn
    option httpchk GET /ready
    http-check expect status 200
    http-reuse never
    retry-on conn-failure empty-response 503
    retries 3
    option redispatch 1
    acl may_repeat path /v1/audio/speech /v1/tts /v1/tts/batch /invocations /v1/vqgan/encode /v1/vqgan/decode /dev/captioned_speech /dev/dialogue /dev/ssml /dev/generate_from_phonemes /dev/phonemize
    http-request disable-l7-retry if !METH_GET !may_repeat
    default-server check inter 500ms fall 2 rise 1
    server w1 127.0.0.1:8001
    server w2 127.0.0.1:8002
)");
}

TEST(BalancerConfig, StrategiesDiffer) {
  const std::string round_robin = haproxy_config(two_workers(Strategy::round_robin));
  EXPECT_THAT(round_robin, AllOf(HasSubstr("balance roundrobin\n"), Not(HasSubstr("voice"))));
  const std::string voice = haproxy_config(two_workers(Strategy::voice));
  EXPECT_THAT(voice, AllOf(HasSubstr("balance hash var(txn.voice)\n"), HasSubstr("hash-balance-factor 125\n"),
                           HasSubstr("req.hdr(x-shoal-voice)\n"), HasSubstr("json_query('$.voice')")));
}

TEST(BalancerConfig, TheSupervisorReachesAnAddressOfTheNetwork) {
  BalancerPlan plan = two_workers(Strategy::voice);
  parse_balancer_address("10.1.2.3:80", plan);
  EXPECT_THAT(haproxy_config(plan), HasSubstr("bind 10.1.2.3:80\n    bind 127.0.0.1:80\n"));
  parse_balancer_address("0.0.0.0:80", plan);
  EXPECT_THAT(haproxy_config(plan), AllOf(HasSubstr("bind 0.0.0.0:80\n"), Not(HasSubstr("bind 127"))));
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
  EXPECT_NO_THROW(Balancer(program, haproxy_config(plan)));
  EXPECT_FALSE(socket.let_in("w1", true)) << "nobody listens";
  expect_bad_argument([&] { Balancer(program, "global\n    nonsense\n"); }, "unknown keyword 'nonsense'");
}

}  // namespace
}  // namespace shoal::fleet
