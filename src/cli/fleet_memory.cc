#include "cli/fleet_memory.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/printable.h"
#include "fleet/log_lines.h"
#include "fleet/memory_share.h"
#include "fleet/process.h"
#include "shoal/model.h"

namespace shoal::cli {
namespace {

constexpr int64_t kMiB = 1 << 20;
// What a process may take of a GPU beside its plan: the CUDA context, and kernels as they are loaded.
constexpr int64_t kGpuProcess = 768 * kMiB;

std::string device_of(const fleet::WorkerPlan& worker) {
  return worker.gpu ? concat("cuda:", *worker.gpu) : "cpu";
}

void add_engine(EngineConfig config, fleet::MemoryNeed& need) {
  const MemoryEstimate estimate = estimate_memory(config);
  const bool has_pages =
      std::ranges::any_of(estimate.figures, [](const auto& figure) { return figure.first == "kv_pages"; });
  need.free_bytes = std::max(need.free_bytes, estimate.available_bytes);
  if (config.kv_memory_mb > 0 || !has_pages) {
    need.fixed_bytes += estimate.total_bytes();
    return;
  }
  config.kv_memory_mb = 1;
  const int64_t least_bytes = estimate_memory(config).total_bytes();
  need.fixed_bytes += least_bytes;
  need.most_bytes = std::max(need.most_bytes, estimate.total_bytes() - least_bytes + kMiB);
  ++need.flexible;
}

// What the process writes until it ends. Throws Error(invalid_argument) if that takes too long.
std::string output_of(const fleet::Child& child, const std::string& worker) {
  constexpr int64_t kLongest_us = 120'000'000;
  constexpr int kLook_ms = 100;
  std::string output;
  char bytes[4096];
  for (const int64_t begin_us = now_us(); now_us() - begin_us < kLongest_us;) {
    pollfd event{.fd = child.output(), .events = POLLIN, .revents = 0};
    poll(&event, 1, kLook_ms);
    const ssize_t count = read(child.output(), bytes, sizeof bytes);
    if (count == 0) return output;
    if (count > 0) output.append(bytes, static_cast<size_t>(count));
  }
  fail(ErrorCode::invalid_argument, worker, ": did not say what memory it needs");
}

fleet::MemoryNeed ask(const fleet::WorkerPlan& worker, fleet::Command command) {
  command.arguments.push_back(kPrintNeed);
  fleet::Child child(command);
  fleet::LogLines lines;
  lines.add(output_of(child, worker.name));
  lines.finish();
  constexpr int kLook_us = 1000, kMostLooks = 10'000;
  for (int looks = 0; !child.poll(); ++looks) {
    if (looks == kMostLooks)
      fail(ErrorCode::invalid_argument, worker.name, ": does not end after saying what memory it needs");
    usleep(kLook_us);
  }
  const auto said = nlohmann::json::parse(lines.last(), nullptr, /*allow_exceptions=*/false);
  if (child.poll()->exit_code == 0 && said.is_object()) {
    return {.free_bytes = said.at("free_bytes"),
            .fixed_bytes = said.at("fixed_bytes"),
            .flexible = said.at("flexible"),
            .fraction = said.at("fraction"),
            .most_bytes = said.at("most_bytes")};
  }
  constexpr size_t kLongestReason = 1000;
  const std::string reason = printable(fleet::without_program(lines.last()), kLongestReason);
  constexpr int kRefusesSettings = 2;
  const bool refuses = child.poll()->exit_code == kRefusesSettings;
  fail(ErrorCode::invalid_argument, worker.name, refuses ? " refuses its settings: " : " cannot run: ",
       reason.empty() ? to_words(*child.poll()) : reason);
}

}  // namespace

void print_memory_need(const ResolvedSettings& settings) {
  fleet::MemoryNeed need{.fraction = settings.config.kv_memory_fraction, .most_bytes = 0};
  add_engine(settings.config, need);
  EngineConfig further = settings.config;
  for (const NamedModel& model : parse_models(settings.server.models)) {
    further.model = model.dir;
    add_engine(further, need);
  }
  const nlohmann::json said = {{"free_bytes", need.free_bytes},
                               {"fixed_bytes", need.fixed_bytes},
                               {"flexible", need.flexible},
                               {"fraction", need.fraction},
                               {"most_bytes", need.most_bytes}};
  std::cout << said.dump() << std::endl;
}

std::map<std::string, int64_t> split_memory(
    const std::vector<fleet::WorkerPlan>& workers,
    const std::function<fleet::Command(const fleet::WorkerPlan&)>& command,
    const std::vector<ResolvedSettings::OfWorker>& sections) {
  std::map<std::string, fleet::DeviceMemory> devices;
  std::map<std::string, std::vector<std::string>> names;
  std::map<std::string, fleet::MemoryNeed> answers;  // by kind of worker
  for (const fleet::WorkerPlan& worker : workers) {
    const std::string name = device_of(worker);
    const bool is_special =
        std::ranges::count(sections, worker.name, &ResolvedSettings::OfWorker::worker) > 0;
    const std::string kind = concat(name, " ", worker.cpus.size(), " ", is_special ? worker.name : "");
    if (!answers.contains(kind)) answers[kind] = ask(worker, command(worker));
    fleet::DeviceMemory& device = devices[name];
    device.device = name;
    device.bytes_of_a_process = worker.gpu ? kGpuProcess : 0;
    device.workers.push_back(answers[kind]);
    names[name].push_back(worker.name);
  }
  std::map<std::string, int64_t> shares_mb;
  for (const auto& [name, device] : devices) {
    const std::vector<int64_t> shares = share_memory(device);
    // One worker alone finds out itself what is free, at each of its starts.
    for (size_t i = 0; i < shares.size() && shares.size() > 1; ++i)
      if (device.workers[i].flexible > 0) shares_mb[names[name][i]] = std::max<int64_t>(1, shares[i] / kMiB);
  }
  return shares_mb;
}

}  // namespace shoal::cli
