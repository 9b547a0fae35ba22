#include <set>

#include "base/error.h"
#include "base/printable.h"
#include "fleet/balancer.h"

namespace shoal::fleet {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

// fd-hard-limit: HAProxy reserves memory for every descriptor that it may open, and containers often allow a
// billion. Its own buffers hold a request until the answer begins: what fits can be sent again.
// http-no-delay: without it the kernel keeps the pieces of a chunked answer until a segment is full, on
// loopback 64 KB, or for 200 ms.
std::string globals(const BalancerPlan& plan) {
  const std::string socket = plan.runtime_socket.empty() ? ""
                                                         : concat("    stats socket ", plan.runtime_socket,
                                                                  " mode 600 level admin\n");
  return concat(
      "global\n"
      "    nbthread 1\n"
      "    fd-hard-limit 65536\n"
      "    tune.bufsize ",
      kRepeatableBytes, "\n", socket, "    hard-stop-after ", plan.grace_s,
      "s\n"
      "\n"
      "defaults\n"
      "    mode http\n"
      "    option http-no-delay\n"
      "    timeout connect 2s\n"
      "    timeout client 75s\n"
      "    timeout server ",
      plan.longest_answer_s,
      "s\n"
      "    timeout tunnel 1h\n"
      "    timeout http-request 60s\n"
      "    timeout http-keep-alive 75s\n"
      "    timeout check 1s\n"
      "    http-error status 503 content-type application/json string '{\"error\":{\"message\":\"no worker "
      "is ready\","
      "\"type\":\"server_error\",\"param\":null,\"code\":\"unavailable\"}}'\n");
}

std::string joined(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) text += " " + path;
  return text;
}

// Criteria that together match these paths, some of which have a name in braces: all below what is before it.
std::vector<std::string> criteria(const std::vector<std::string>& paths) {
  std::vector<std::string> exact, all;
  std::set<std::string> prefixes;
  for (const std::string& path : paths) {
    const size_t brace = path.find('{');
    if (brace == std::string::npos)
      exact.push_back(path);
    else
      prefixes.insert(path.substr(0, brace));
  }
  if (!exact.empty() || prefixes.empty()) all.push_back("path" + joined(exact));
  for (const std::string& prefix : prefixes) all.push_back("path_beg " + prefix);
  return all;
}

// Where clients come in, and where the supervisor asks whether it answers.
std::string binds(const BalancerPlan& plan) {
  // Like the servers' own: forward secret, and with authenticated encryption.
  constexpr const char* kTls = " ssl-min-ver TLSv1.2 ciphers ECDHE+AESGCM:ECDHE+CHACHA20";
  std::string text = concat("    bind ", plan.host, ":", plan.port);
  if (!plan.certificate.empty()) text += concat(" ssl crt ", plan.certificate, kTls);
  text += "\n";
  if (!plan.ready_socket.empty()) text += concat("    bind unix@", plan.ready_socket, " mode 600\n");
  return text;
}

// A page of the balancer's own address is a page of the worker's: a worker at a loopback address would take
// the name for a stranger's (DNS rebinding).
std::string own_pages(const BalancerPlan& plan) {
  if (plan.host.starts_with("127.")) return "";
  return "    http-request set-var(txn.host) req.hdr(host)\n"
         "    http-request del-header origin if { req.hdr(origin),regsub(^https?://,),strcmp(txn.host) eq 0 "
         "}\n";
}

std::string voices(const BalancerPlan& plan) {
  if (plan.strategy != Strategy::voice) return "";
  return "    option http-buffer-request\n"
         "    http-request set-var(txn.voice) req.hdr(x-shoal-voice)\n"
         "    http-request set-var(txn.voice) req.body,json_query('$.voice') if !{ var(txn.voice) -m found "
         "}\n"
         "    http-request set-var(txn.voice) req.body,json_query('$.reference_id') if !{ var(txn.voice) -m "
         "found }\n";
}

// Whether what comes from another fleet is for its own workers alone.
bool has_own(const BalancerPlan& plan) { return plan.hosts && !plan.workers.empty(); }

// What the balancer answers itself, in the form of the route.
std::string refusals(const BalancerPlan& plan) {
  std::string text;
  const auto refuse = [&](int status, const std::string& body, const std::vector<std::string>& paths,
                          const std::string& when) {
    for (const std::string& criterion : criteria(paths))
      text += concat("    http-request return status ", status,
                     " content-type application/json hdr retry-after 1 hdr x-request-id ", kRequestId,
                     " lf-string '", body, "' if { ", criterion, " } ", when, " !METH_OPTIONS\n");
  };
  for (const Form& form : plan.forms) {
    refuse(503, form.absent, form.paths, "!is_ready");
    if (plan.most_inside > 0)
      refuse(
          429, form.full, form.paths,
          concat("{ be_conn(workers)", has_own(plan) ? ",add(txn.own)" : "", " ge ", plan.most_inside, " }"));
  }
  return text;
}

// What comes from another fleet.
std::string passed_on(const BalancerPlan& plan) {
  if (!plan.hosts) return "";
  // 508: a 503 would be tried again, by each of them.
  std::string text = concat(
      "    http-request set-var(txn.fleets) req.hdr(", kFleetHeader,
      "),length\n    http-request return status 508 content-type application/json string "
      "'{\"error\":{\"message\":\"fleets without workers name each other\",\"type\":"
      "\"server_error\",\"param\":null,\"code\":\"unavailable\"}}' if { var(txn.fleets) -m int ge ",
      kMostFleets, " }\n    http-request set-header ", kFleetHeader, " %[req.hdr(", kFleetHeader, ")]+\n");
  if (has_own(plan)) text += "    http-request set-var(txn.own) be_conn(own)\n";
  return text;
}

// GET /ready; other methods are a worker's to refuse.
std::string readiness(const BalancerPlan& plan) {
  const auto answer = [](int status, const char* body, const std::string& when) {
    return concat("    http-request return status ", status, " content-type application/json lf-string '",
                  body, "' if is_asked ", when, "\n");
  };
  constexpr const char* kNotReady = R"({"ready":false,"workers":0})";
  std::string text = concat("    acl is_ready nbsrv(workers) ge 1\n    acl is_asked path /ready\n",
                            answer(503, kNotReady, "METH_GET !is_ready"));
  if (has_own(plan))
    text += answer(503, kNotReady,
                   concat("METH_GET { req.hdr(", kFleetHeader, ") -m found } { nbsrv(own) eq 0 }"));
  return text + answer(200, R"({"ready":true,"workers":%[nbsrv(workers)]})", "METH_GET");
}

std::string frontend(const BalancerPlan& plan) {
  std::string text =
      concat("\nfrontend speech\n", binds(plan), readiness(plan),
             "    http-request set-header x-request-id %[uuid()] if !{ req.hdr(x-request-id) -m reg "
             "^[A-Za-z0-9._-]{1,64}$ }\n",
             own_pages(plan), voices(plan), passed_on(plan), refusals(plan));
  if (plan.fleet_port != 0)
    text += concat("    use_backend fleet if { path", joined(plan.fleet_paths),
                   " }\n"
                   "    use_backend fleet if { path_beg /v1/admin }\n");
  if (has_own(plan)) text += "    use_backend own if { var(txn.fleets) -m found }\n";
  return text + "    default_backend workers\n";
}

const char* balance(Strategy strategy) {
  switch (strategy) {
    case Strategy::least_connections:
      return "    balance leastconn\n";
    case Strategy::round_robin:
      return "    balance roundrobin\n";
    case Strategy::voice:
      return "    balance hash var(txn.voice)\n"
             "    hash-type consistent\n"
             "    hash-balance-factor 125\n";
  }
  return "";
}

// A connection whose other end is silent ends without the supervisor, too, if later: see HostRoster::cut_off.
std::string hosts_of(const BalancerPlan& plan) {
  if (!plan.hosts) return "";
  std::string text =
      "    option srvtcpka\n"
      "    srvtcpka-idle 4s\n"
      "    srvtcpka-intvl 2s\n"
      "    srvtcpka-cnt 3\n";
  for (const HostPlan& host : *plan.hosts) text += concat("    server ", server_of(host), " tcp-ut 10s\n");
  return text;
}

// Several workers may die at once: a request that is sent again may meet them in turn, until each of them
// counts as dead.
std::string sending(const char* name, const BalancerPlan& plan) {
  std::string repeatable;
  for (const std::string& criterion : criteria(plan.repeatable))
    repeatable += "    acl may_repeat " + criterion + "\n";
  return concat("\nbackend ", name, "\n", balance(plan.strategy),
                "    http-reuse never\n"
                "    retry-on conn-failure empty-response 503\n"
                "    retries 10\n"
                "    option redispatch 1\n",
                repeatable, "    http-request disable-l7-retry if !METH_GET !may_repeat\n");
}

std::string backends(const BalancerPlan& plan) {
  std::string text =
      concat(sending("workers", plan), "    option httpchk\n    http-check send meth GET uri /ready",
             plan.hosts ? concat(" hdr ", kFleetHeader, " +") : "", "\n    http-check expect status 200\n",
             "    default-server ", kHealth, "\n");
  for (const WorkerPlan& worker : plan.workers)
    text += concat("    server ", worker.name, " ", kLoopback, ":", worker.port, "\n");
  text += hosts_of(plan);
  if (!has_own(plan)) return text;
  text += sending("own", plan);
  for (const WorkerPlan& worker : plan.workers)
    text += concat("    server ", worker.name, " ", kLoopback, ":", worker.port, " track workers/",
                   worker.name, "\n");
  return text;
}

}  // namespace

Strategy parse_strategy(std::string_view name) {
  if (name == "least-connections") return Strategy::least_connections;
  if (name == "round-robin") return Strategy::round_robin;
  if (name == "voice") return Strategy::voice;
  fail(ErrorCode::invalid_argument, "strategy: expected least-connections, round-robin or voice, got \"",
       printable(name), "\"");
}

void parse_balancer_address(const std::string& listen, BalancerPlan& plan) {
  const std::optional<Address> address = parse_address(listen);
  if (!address)
    fail(ErrorCode::invalid_argument,
         "listen: expected an IPv4 address and a port, as in 127.0.0.1:8000, got \"", printable(listen),
         "\"");
  plan.host = address->host;
  plan.port = address->port;
}

std::string haproxy_config(const BalancerPlan& plan) {
  const std::string of_fleet =
      concat("\nbackend fleet\n    server supervisor ", kLoopback, ":", plan.fleet_port, "\n");
  return globals(plan) + frontend(plan) + backends(plan) + (plan.fleet_port == 0 ? "" : of_fleet);
}

}  // namespace shoal::fleet
