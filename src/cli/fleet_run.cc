#include "cli/fleet_run.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "cli/fleet_door.h"
#include "cli/fleet_front.h"
#include "cli/fleet_memory.h"
#include "cli/fleet_settings.h"
#include "cli/interrupt.h"
#include "fleet/machine.h"
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

fleet::Command command_of(const fleet::WorkerPlan& worker, const std::vector<std::string>& options,
                          const std::vector<std::string>& gpus) {
  fleet::Command command{.program = std::filesystem::read_symlink("/proc/self/exe").string(),
                         .arguments = {"serve"},
                         .cpus = worker.cpus};
  command.arguments.insert(command.arguments.end(), options.begin(), options.end());
  command.arguments.push_back(concat("--listen=127.0.0.1:", worker.port));
  command.arguments.push_back(worker.gpu ? "--device=cuda" : "--device=cpu");
  if (worker.gpu)
    command.environment.push_back("CUDA_VISIBLE_DEVICES=" + gpus[static_cast<size_t>(*worker.gpu)]);
  return command;
}

// The signals of a fleet. SIGHUP asks for a rolling restart; if the terminal that started the fleet is gone,
// for its end.
class FleetSignals {
 public:
  bool should_end() {
    if (interrupt_.take_hangup()) hung_up_ = has_new_hosts_ = true;
    return interrupt_.received() || (hung_up_ && had_terminal_ && !has_terminal());
  }
  bool take_hangup() { return std::exchange(hung_up_, false); }
  bool take_new_hosts() { return std::exchange(has_new_hosts_, false); }  // the same SIGHUP

 private:
  const InterruptGuard interrupt_{Hangup::is_remembered};
  const bool had_terminal_ = has_terminal();
  bool hung_up_ = false, has_new_hosts_ = false;
};

// Whether new workers would accept the settings as they are now.
bool are_still_right(const WorkerSettings& settings) {
  try {
    settings.resolve();
    return true;
  } catch (const Error& error) {
    log(LogLevel::error, "SIGHUP: ", error.message(), "; the fleet goes on as it was");
    return false;
  }
}

std::vector<std::string> names_of(const std::vector<fleet::WorkerPlan>& plans) {
  std::vector<std::string> names;
  for (const fleet::WorkerPlan& plan : plans) names.push_back(plan.name);
  return names;
}

void warn_of_crowded_cpus(const std::vector<fleet::WorkerPlan>& plans, size_t cpus) {
  const auto count =
      static_cast<size_t>(std::ranges::count_if(plans, [](const auto& plan) { return !plan.gpu; }));
  if (count > cpus) log(LogLevel::warning, count, " workers on the CPU share its ", cpus, " cores");
}

// The hosts as they are now; nothing: they are as they were.
std::optional<std::vector<fleet::HostPlan>> hosts_again(const FleetCommand& asked) {
  if (asked.hosts.empty()) return std::nullopt;
  try {
    return read_hosts(asked);
  } catch (const Error& error) {
    log(LogLevel::error, "SIGHUP: ", error.message(), "; the hosts stay as they were");
    return std::nullopt;
  }
}

void print_line(std::string_view line) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
}

}  // namespace

void run_fleet_command(FleetCommand asked, const std::vector<std::string>& options) {
  const std::vector<std::string> gpus = gpu_names();
  asked.request.gpus = static_cast<int>(gpus.size());
  asked.request.cpus = fleet::usable_cpus();
  for (const int cpu : asked.request.cpus) asked.request.cpu_nodes.push_back(fleet::node_of_cpu(cpu));
  for (const std::string& gpu : gpus) asked.request.gpu_nodes.push_back(fleet::node_of_gpu(gpu));
  const std::vector<fleet::WorkerPlan> plans = plan_workers(asked.request);
  WorkerSettings workers(options, names_of(plans));
  const ResolvedSettings resolved = workers.resolve();
  const ServerConfig& server = resolved.server;
  const auto command = [&](const fleet::WorkerPlan& worker) {
    return command_of(worker, workers.options(worker.name), gpus);
  };
  const std::optional<fleet::BalancerPlan> in_front = plan_balancer(asked, server);
  if (asked.print_haproxy) {
    if (in_front) std::cout << haproxy_config(*in_front);
    return;
  }
  workers.give_shares(split_memory(plans, command, resolved.of_workers));
  constexpr int kOwnGrace_s = 5;  // besides that of the requests, for leaving
  FleetSignals signals;
  fleet::Desk desk;
  std::optional<FleetFront> front;
  const auto should_roll = [&] {
    if (!signals.take_hangup()) return false;
    if (front) front->renew_certificate();
    return are_still_right(workers);
  };
  fleet::FleetOptions fleet{
      .workers = plans,
      .command = command,
      .stagger_us = asked.stagger_s * kSecond_us,
      .of_processes = {.grace_us = (server.grace_s + kOwnGrace_s) * kSecond_us, .print = print_line},
      .should_end = [&] { return signals.should_end(); },
      .should_roll = should_roll,
      .change = [&](const fleet::Settings& changes) { workers.change(changes); },
      .desk = &desk};
  const server::ServerLog logging(server);
  warn_of_crowded_cpus(plans, asked.request.cpus.size());
  const FleetDoor door(server, in_front ? asked.listen : server.operator_listen, desk);
  fleet.door = door.address();
  if (in_front) {
    fleet.hosts = in_front->hosts.value_or(std::vector<fleet::HostPlan>());
    fleet.new_hosts = [&] { return signals.take_new_hosts() ? hosts_again(asked) : std::nullopt; };
    front.emplace(*in_front, asked.haproxy, server, door.port());
    fleet.balancer = front->options();
  }
  run_fleet(fleet);
}

}  // namespace shoal::cli
