#include "cli/fleet_front.h"

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "fleet/routes/fleet_server.h"
#include "server/http/tls.h"
#include "server/route_list.h"

namespace shoal::cli {
namespace {

// Both files, as HAProxy has them. Throws what a server throws that reads them.
std::string pem_of(const std::string& certificate, const std::string& key) {
  constexpr int64_t kMostBytes = 1 << 20;
  if (certificate.empty()) return "";
  server::make_tls(certificate, key);
  return read_file(certificate, kMostBytes) + "\n" + read_file(key, kMostBytes);
}

}  // namespace

std::optional<fleet::BalancerPlan> plan_balancer(const FleetCommand& asked, const ServerConfig& server) {
  constexpr int kOwnTime_s = 15;  // a worker that is out of time says so first
  if (asked.balancer != "haproxy" && asked.balancer != "none")
    fail(ErrorCode::invalid_argument, "balancer: expected haproxy or none, got \"", asked.balancer, "\"");
  fleet::BalancerPlan plan{.strategy = fleet::parse_strategy(asked.strategy),
                           .workers = plan_workers(asked.request),
                           .repeatable = server::repeatable_paths(server),
                           .longest_answer_s = server.max_timeout_s + kOwnTime_s,
                           .certificate = server.tls_certificate,
                           .most_inside = asked.queue_limit,
                           .grace_s = server.grace_s};
  parse_balancer_address(asked.listen, plan);
  if (!asked.hosts.empty()) plan.hosts = read_hosts(asked);
  if (!plan.hosts && plan.workers.empty())
    fail(ErrorCode::invalid_argument, "workers: expected 1 or more, or 0 with --hosts");
  if (asked.balancer == "none") {
    if (plan.hosts) fail(ErrorCode::invalid_argument, "hosts: there is no balancer to send them requests");
    if (!server.tls_certificate.empty())
      fail(ErrorCode::invalid_argument,
           "tls_certificate: workers speak plain HTTP, and there is no balancer");
    return std::nullopt;
  }
  for (const fleet::WorkerPlan& worker : plan.workers)
    if (worker.port == plan.port)
      fail(ErrorCode::invalid_argument, "listen: port ", plan.port, " is that of ", worker.name,
           " (see base_port)");
  const std::string why = concat("the fleet has ", asked.queue_limit,
                                 " requests inside and takes no more now (queue_limit); try again");
  for (server::SpeechForm& form : server::speech_forms(server, why, fleet::kRequestId))
    plan.forms.push_back({std::move(form.paths), std::move(form.full), std::move(form.absent)});
  return plan;
}

std::vector<fleet::HostPlan> read_hosts(const FleetCommand& asked) {
  constexpr int64_t kMostBytes = 1 << 20;
  if (asked.hosts.empty()) return {};
  std::string text;
  try {
    text = read_file(asked.hosts, kMostBytes);
  } catch (const Error& error) {
    fail(ErrorCode::invalid_argument, "hosts: ", error.message());
  }
  std::vector<fleet::HostPlan> hosts = fleet::parse_hosts(text);
  const auto own = fleet::parse_address(asked.listen);
  for (const fleet::HostPlan& host : hosts)
    if (host.address == own)
      fail(ErrorCode::invalid_argument, "hosts: ", asked.listen, " is where the balancer listens itself");
  if (hosts.empty() && asked.request.workers == 0)
    fail(ErrorCode::invalid_argument, "hosts: ", asked.hosts, " names none, and workers is 0");
  return hosts;
}

FleetFront::FleetFront(fleet::BalancerPlan plan, const std::string& program, const ServerConfig& server,
                       int fleet_port)
    : certificate_(server.tls_certificate),
      key_(server.tls_key),
      pem_(pem_of(certificate_, key_)),
      plan_(completed(std::move(plan), fleet_port)),
      balancer_(fleet::find_haproxy(program), haproxy_config(plan_)) {}

fleet::BalancerPlan FleetFront::completed(fleet::BalancerPlan plan, int fleet_port) {
  if (!pem_.empty()) plan.certificate = pem_file_.emplace("certificate.pem", pem_).path();
  plan.fleet_port = fleet_port;
  plan.fleet_paths = fleet::fleet_paths();
  plan.runtime_socket = socket_.path();
  plan.ready_socket = socket_.ready_path();
  return plan;
}

fleet::FleetOptions::InFront FleetFront::options() {
  fleet::FleetOptions::InFront options{
      .port = plan_.port,
      .ready_socket = socket_.ready_path(),
      .command = balancer_.command(),
      .let_in = [this](const std::string& worker, bool in) { return socket_.let_in(worker, in); },
      .ask = [this](const std::string& commands) { return socket_.ask(commands); },
      .remember_hosts = {}};
  if (plan_.hosts)
    options.remember_hosts = [this](const std::vector<fleet::HostPlan>& hosts) {
      plan_.hosts = hosts;
      balancer_.replace(haproxy_config(plan_));
    };
  return options;
}

void FleetFront::renew_certificate() {
  if (certificate_.empty()) return;
  try {
    const std::string pem = pem_of(certificate_, key_);
    if (pem == pem_) return;
    if (!socket_.replace_certificate(pem_file_->path(), pem))
      fail(ErrorCode::io, "tls_certificate: the balancer did not take it");
    pem_file_->replace(pem);  // for its next process
    pem_ = pem;
    log(LogLevel::info, "tls_certificate: read again");
  } catch (const Error& error) {
    log(LogLevel::error, error.message(), "; the one before stays");
  }
}

}  // namespace shoal::cli
