#include "fleet/plan.h"

#include <algorithm>
#include <charconv>

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

void share_cpus(std::vector<WorkerPlan>& workers, const std::vector<int>& cpus) {
  const auto count = static_cast<size_t>(
      std::ranges::count_if(workers, [](const WorkerPlan& worker) { return !worker.gpu.has_value(); }));
  size_t at = 0;
  for (WorkerPlan& worker : workers) {
    if (worker.gpu) continue;
    if (count > cpus.size() && !cpus.empty()) {
      worker.cpus = {cpus[at++ % cpus.size()]};
      continue;
    }
    const auto run = [&](size_t index) {
      return cpus.begin() + static_cast<ptrdiff_t>(index * cpus.size() / count);
    };
    worker.cpus.assign(run(at), run(at + 1));
    ++at;
  }
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
  share_cpus(workers, request.cpus);
  return workers;
}

}  // namespace shoal::fleet
