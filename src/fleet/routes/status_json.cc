#include "fleet/routes/status_json.h"

#include <array>
#include <map>
#include <unistd.h>

#include "base/error.h"
#include "fleet/machine.h"

namespace shoal::fleet {
namespace {

using server::Value;
using Object = Value::Object;

constexpr std::array kStates = {WorkerState::waiting,  WorkerState::starting,   WorkerState::ready,
                                WorkerState::unready,  WorkerState::draining,   WorkerState::ending,
                                WorkerState::given_up, WorkerState::unreachable};

std::string address_of(const WorkerStatus& worker) { return concat(worker.host, ":", worker.port); }

Value process_id(pid_t pid) { return pid > 0 ? Value{int64_t{pid}} : Value{}; }

Value member(const Value& of, std::string_view name) {
  const Value* found = of.find(name);
  return found ? *found : Value{};
}

// Requests inside: the sum of the queue's stages.
Value load_of(const Value& figures) {
  const Value queue = member(figures, "queue");
  const auto* stages = queue.as<Object>();
  if (!stages) return {};
  int64_t load = 0;
  for (const auto& [name, count] : *stages)
    if (const auto* number = count.as<int64_t>()) load += *number;
  return {load};
}

std::map<std::string, int64_t> counts_of(const FleetStatus& status) {
  std::map<std::string, int64_t> counts;
  for (const WorkerStatus& worker : status.workers) ++counts[name_of(worker.state)];
  return counts;
}

// Lines of one metric.
class Metric {
 public:
  Metric(std::string& out, std::string name, std::string_view type, std::string_view help)
      : out_(out), name_(std::move(name)) {
    out_ += concat("# HELP ", name_, " ", help, "\n# TYPE ", name_, " ", type, "\n");
  }
  template <typename Number>
  void add(std::string_view label, std::string_view of, Number value) {
    out_ += label.empty() ? name_ : concat(name_, "{", label, "=\"", of, "\"}");
    out_ += concat(" ", value, "\n");
  }

 private:
  std::string& out_;
  const std::string name_;
};

}  // namespace

Value worker_json(const WorkerStatus& worker, const Value& figures) {
  const int64_t resident = worker.pid > 0 ? resident_bytes_of(worker.pid) : 0;
  return {
      Object{{"name", {worker.name}},
             {"state", {std::string(name_of(worker.state))}},
             {"gets_requests", {worker.gets_requests}},
             {"pid", process_id(worker.pid)},
             {"device", server::text_or_null(worker.device)},
             {"host", {worker.host}},
             {"port", {int64_t{worker.port}}},
             {"load", load_of(figures)},
             {"queue", member(figures, "queue")},
             {"memory",
              {Object{{"resident_bytes", resident > 0 ? Value{resident} : member(figures, "resident_bytes")},
                      {"device", member(figures, "device_memory")}}}},
             {"restarts", {int64_t{worker.restarts}}},
             {"failures", {int64_t{worker.failures}}},
             {"last_error", server::text_or_null(worker.last_error)},
             {"uptime_s", worker.pid > 0 ? Value{worker.uptime_s} : member(figures, "uptime_s")}}};
}

Value counts_json(const FleetStatus& status) {
  Object counts{{"total", {static_cast<int64_t>(status.workers.size())}},
                {"getting_requests", {int64_t{status.ready()}}}};
  const auto by_state = counts_of(status);
  for (const WorkerState state : kStates)
    if (by_state.contains(name_of(state)))
      counts.emplace_back(name_of(state), Value{by_state.at(name_of(state))});
  return {std::move(counts)};
}

Value rolling_json(const FleetStatus& status) {
  if (!status.rolling) return {};
  Value::Array turns;
  for (const std::string& worker : status.rolling->turns) turns.push_back({worker});
  return {Object{{"what", {status.rolling->what}},
                 {"outcome", {status.rolling->outcome}},
                 {"turns", {std::move(turns)}}}};
}

Value targets_json(const FleetStatus& status) {
  Value::Array groups;
  for (const WorkerStatus& worker : status.workers) {
    Object labels{{"worker", {worker.name}}};
    if (!worker.device.empty()) labels.emplace_back("device", Value{worker.device});
    groups.push_back(
        {Object{{"targets", {Value::Array{{address_of(worker)}}}}, {"labels", {std::move(labels)}}}});
  }
  return {std::move(groups)};
}

std::string exposition(const FleetStatus& status) {
  std::string text;
  const auto by_state = counts_of(status);
  Metric workers(text, "shoal_fleet_workers", "gauge", "workers by state");
  for (const WorkerState state : kStates) {
    const auto count = by_state.find(name_of(state));
    workers.add("state", name_of(state), count == by_state.end() ? 0 : count->second);
  }
  Metric(text, "shoal_fleet_ready", "gauge", "workers that get requests").add("", "", status.ready());
  Metric ready(text, "shoal_fleet_worker_ready", "gauge", "1: ready, and gets requests");
  for (const WorkerStatus& worker : status.workers)
    ready.add("worker", worker.name, worker.gets_requests && worker.state == WorkerState::ready ? 1 : 0);
  Metric restarts(text, "shoal_fleet_worker_restarts_total", "counter", "processes after the first");
  for (const WorkerStatus& worker : status.workers) restarts.add("worker", worker.name, worker.restarts);
  Metric failures(text, "shoal_fleet_worker_failures", "gauge", "failures in a row");
  for (const WorkerStatus& worker : status.workers) failures.add("worker", worker.name, worker.failures);
  Metric memory(text, "shoal_fleet_worker_resident_bytes", "gauge", "memory of the process");
  for (const WorkerStatus& worker : status.workers)
    if (worker.pid > 0) memory.add("worker", worker.name, resident_bytes_of(worker.pid));
  if (status.balancer_pid > 0) {
    Metric(text, "shoal_fleet_balancer_restarts_total", "counter",
           "processes of the balancer after the first")
        .add("", "", status.balancer_restarts);
    Metric(text, "shoal_fleet_balancer_resident_bytes", "gauge", "memory of the balancer")
        .add("", "", resident_bytes_of(status.balancer_pid));
  }
  Metric(text, "shoal_fleet_uptime_seconds", "gauge", "since the fleet began").add("", "", status.uptime_s);
  Metric(text, "process_resident_memory_bytes", "gauge", "memory of the supervisor")
      .add("", "", resident_bytes_of(getpid()));
  return text;
}

}  // namespace shoal::fleet
