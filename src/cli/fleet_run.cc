#include "cli/fleet_run.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "cli/engine_settings.h"
#include "cli/interrupt.h"
#include "fleet/balancer.h"
#include "fleet/machine.h"
#include "fleet/runtime_socket.h"
#include "fleet/supervisor.h"
#include "server/observe/log_sink.h"

namespace shoal::cli {
namespace {

constexpr int64_t kSecond_us = 1'000'000;

// The GPUs that CUDA would see, by the names that CUDA_VISIBLE_DEVICES gives them.
std::vector<std::string> gpu_names() {
  std::vector<std::string> names;
  const char* listed = std::getenv("CUDA_VISIBLE_DEVICES");
  if (listed == nullptr) {
    for (int i = 0; i < fleet::visible_gpus(); ++i) names.push_back(concat(i));
    return names;
  }
  std::string_view list = listed;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    names.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return names;
}

// `options` as `shoal serve` understands them. Throws what it would throw.
ResolvedSettings resolve_of_serve(std::vector<std::string> options) {
  CLI::App app;
  EngineSettings settings;
  settings.add_to(app, EngineSettings::Scope::server);
  std::ranges::reverse(options);  // CLI11 takes them from the end
  app.parse(std::move(options));
  for (const char* of_a_worker : {"--listen", "--device"})
    if (app.get_option(of_a_worker)->count() > 0)
      fail(ErrorCode::invalid_argument, of_a_worker + 2, ": the fleet gives each worker its own");
  if (settings.wants_print())
    fail(ErrorCode::invalid_argument,
         "print_config: `shoal serve` prints the settings, `shoal fleet` does not");
  return settings.resolve();
}

void refuse_what_cannot_be_shared(const ServerConfig& server) {
  const auto refuse = [](const std::string& value, const char* name, const char* why) {
    if (!value.empty()) fail(ErrorCode::invalid_argument, name, ": ", why, "; expected none in a fleet");
  };
  refuse(server.operator_listen, "operator_listen", "every worker would have the same address");
  refuse(server.trace, "trace", "every worker would write the same file");
  refuse(server.tls_certificate, "tls_certificate", "workers speak plain HTTP on the loopback address");
}

fleet::Command command_of(const fleet::WorkerPlan& worker, const std::vector<std::string>& options,
                          const std::vector<std::string>& gpus) {
  fleet::Command command{.program = std::filesystem::read_symlink("/proc/self/exe").string(),
                         .arguments = {"serve"},
                         .cpus = worker.cpus};
  command.arguments.insert(command.arguments.end(), options.begin(), options.end());
  for (const std::string& argument : {std::string("--listen"), concat("127.0.0.1:", worker.port),
                                      std::string("--device"), std::string(worker.gpu ? "cuda" : "cpu")})
    command.arguments.push_back(argument);
  if (worker.gpu)
    command.environment.push_back("CUDA_VISIBLE_DEVICES=" + gpus[static_cast<size_t>(*worker.gpu)]);
  return command;
}

// Nothing: --balancer none.
std::optional<fleet::BalancerPlan> plan_balancer(const FleetCommand& asked, const ServerConfig& server) {
  constexpr int kOwnTime_s = 15;  // a worker that is out of time says so first
  if (asked.balancer != "haproxy" && asked.balancer != "none")
    fail(ErrorCode::invalid_argument, "balancer: expected haproxy or none, got \"", asked.balancer, "\"");
  fleet::BalancerPlan plan{.strategy = fleet::parse_strategy(asked.strategy),
                           .longest_answer_s = server.max_timeout_s + kOwnTime_s,
                           .grace_s = server.grace_s};
  parse_balancer_address(asked.listen, plan);
  if (asked.balancer == "none") return std::nullopt;
  plan.workers = plan_workers(asked.request);
  for (const fleet::WorkerPlan& worker : plan.workers)
    if (worker.port == plan.port)
      fail(ErrorCode::invalid_argument, "listen: port ", plan.port, " is that of ", worker.name,
           " (see base_port)");
  return plan;
}

// The signals of a fleet. SIGHUP asks for a rolling restart; if the terminal that started the fleet is gone,
// for its end.
class FleetSignals {
 public:
  bool should_end() {
    hung_up_ = interrupt_.take_hangup() || hung_up_;
    return interrupt_.received() || (hung_up_ && had_terminal_ && !has_terminal());
  }
  bool take_hangup() { return std::exchange(hung_up_, false); }

 private:
  const InterruptGuard interrupt_{Hangup::is_remembered};
  const bool had_terminal_ = has_terminal();
  bool hung_up_ = false;
};

// Whether new workers would accept the settings as they are now.
bool are_still_right(const std::vector<std::string>& options) {
  try {
    refuse_what_cannot_be_shared(resolve_of_serve(options).server);
    return true;
  } catch (const Error& error) {
    log(LogLevel::error, "SIGHUP: ", error.message(), "; the fleet goes on as it was");
    return false;
  }
}

}  // namespace

void run_fleet_command(FleetCommand asked, const std::vector<std::string>& options) {
  const ResolvedSettings settings = resolve_of_serve(options);
  refuse_what_cannot_be_shared(settings.server);
  const std::vector<std::string> gpus = gpu_names();
  asked.request.gpus = static_cast<int>(gpus.size());
  asked.request.cpus = fleet::usable_cpus();
  std::optional<fleet::BalancerPlan> in_front = plan_balancer(asked, settings.server);
  if (asked.print_haproxy) {
    if (in_front) std::cout << haproxy_config(*in_front);
    return;
  }
  constexpr int kOwnGrace_s = 5;  // besides that of the requests, for leaving
  FleetSignals signals;
  fleet::FleetOptions fleet{
      .workers = plan_workers(asked.request),
      .command = [&](const fleet::WorkerPlan& worker) { return command_of(worker, options, gpus); },
      .stagger_us = asked.stagger_s * kSecond_us,
      .grace_us = (settings.server.grace_s + kOwnGrace_s) * kSecond_us,
      .should_end = [&] { return signals.should_end(); },
      .should_roll = [&] { return signals.take_hangup() && are_still_right(options); },
      .print =
          [](std::string_view line) {
            std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
          }};
  std::optional<fleet::RuntimeSocket> socket;
  std::optional<fleet::Balancer> balancer;
  if (in_front) {
    in_front->runtime_socket = socket.emplace().path();
    balancer.emplace(fleet::find_haproxy(asked.haproxy), haproxy_config(*in_front));
    fleet.balancer = {
        .port = in_front->port,
        .command = balancer->command(),
        .let_in = [&](const std::string& worker, bool in) { return socket->let_in(worker, in); }};
  }
  const server::ServerLog logging(settings.server);
  run_fleet(fleet);
}

}  // namespace shoal::cli
