#include "fleet/plan.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/error.h"
#include "base/printable.h"

namespace shoal::fleet {
namespace {

constexpr int kLastPort = 65535;

std::optional<int> parse_gpu(std::string_view device, int gpus) {
  constexpr std::string_view kPrefix = "cuda:";
  if (device == "cpu") return std::nullopt;
  int gpu = -1;
  const std::string_view number = device.substr(std::min(kPrefix.size(), device.size()));
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), gpu);
  if (!device.starts_with(kPrefix) || error != std::errc{} || end != number.data() + number.size() || gpu < 0)
    fail(ErrorCode::invalid_argument, "devices: expected auto, cpu or cuda:N with commas between, got \"",
         printable(device), "\"");
  if (gpu >= gpus)
    fail(ErrorCode::invalid_argument, "devices: cuda:", gpu, " does not exist; this machine has ", gpus,
         " GPUs");
  return gpu;
}

std::vector<std::optional<int>> parse_devices(std::string_view list, int gpus) {
  std::vector<std::optional<int>> devices;
  if (list == "auto") {
    for (int gpu = 0; gpu < gpus; ++gpu) devices.emplace_back(gpu);
    if (devices.empty()) devices.emplace_back(std::nullopt);
    return devices;
  }
  while (true) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::optional<int> device = parse_gpu(list.substr(0, comma), gpus);
    if (std::ranges::count(devices, device) > 0)
      fail(ErrorCode::invalid_argument, "devices: \"", printable(list.substr(0, comma)),
           "\" stands there twice (per_device says how many workers share a device)");
    devices.push_back(device);
    if (comma == list.size()) return devices;
    list.remove_prefix(comma + 1);
  }
}

void share_cpus(const std::vector<WorkerPlan*>& workers, const std::vector<int>& cpus) {
  const size_t count = workers.size();
  for (size_t i = 0; i < count && !cpus.empty(); ++i) {
    if (count > cpus.size()) {
      workers[i]->cpus = {cpus[i % cpus.size()]};
      continue;
    }
    const auto run = [&](size_t index) {
      return cpus.begin() + static_cast<ptrdiff_t>(index * cpus.size() / count);
    };
    workers[i]->cpus.assign(run(i), run(i + 1));
  }
}

std::vector<int> cpus_of_node(const FleetRequest& request, std::optional<int> node) {
  std::vector<int> cpus;
  for (size_t i = 0; node && i < std::min(request.cpus.size(), request.cpu_nodes.size()); ++i)
    if (request.cpu_nodes[i] == *node) cpus.push_back(request.cpus[i]);
  return cpus.empty() ? request.cpus : cpus;
}

std::optional<int> node_of(const FleetRequest& request, int gpu) {
  const auto index = static_cast<size_t>(gpu);
  return index < request.gpu_nodes.size() ? request.gpu_nodes[index] : std::nullopt;
}

void share_cpus(std::vector<WorkerPlan>& workers, const FleetRequest& request) {
  std::vector<WorkerPlan*> on_cpus;
  std::map<std::vector<int>, std::vector<WorkerPlan*>> on_gpus;  // by the CPUs that they share
  for (WorkerPlan& worker : workers) {
    if (worker.gpu) {
      on_gpus[cpus_of_node(request, node_of(request, *worker.gpu))].push_back(&worker);
    } else {
      on_cpus.push_back(&worker);
    }
  }
  share_cpus(on_cpus, request.cpus);
  for (const auto& [cpus, those] : on_gpus) share_cpus(those, cpus);
}

}  // namespace

std::vector<WorkerPlan> plan_workers(const FleetRequest& request) {
  std::vector<WorkerPlan> workers;
  const std::vector<std::optional<int>> devices = parse_devices(request.devices, request.gpus);
  const int device_count = static_cast<int>(devices.size());
  const int wanted = request.workers.value_or(device_count * request.per_device);
  for (int device = 0; device < device_count; ++device) {
    const std::optional<int>& gpu = devices[static_cast<size_t>(device)];
    const int share = wanted / device_count + (device < wanted % device_count ? 1 : 0);
    for (int i = 0; i < share; ++i) {
      const int index = static_cast<int>(workers.size());
      workers.push_back({.name = concat("w", index + 1), .gpu = gpu, .port = request.base_port + index});
    }
  }
  if (!workers.empty() && workers.back().port > kLastPort)
    fail(ErrorCode::invalid_argument, "base_port: ", workers.size(), " workers from port ", request.base_port,
         " on would need port ", workers.back().port);
  share_cpus(workers, request);
  return workers;
}

}  // namespace shoal::fleet
