#include "fleet/machine.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sched.h>
#include <string>
#include <string_view>
#include <unistd.h>

#include "base/error.h"

namespace shoal::fleet {
namespace {

namespace fs = std::filesystem;

// N of a name that is `prefix` and a number; otherwise -1.
int number_after(std::string_view prefix, std::string_view name) {
  int number = -1;
  if (!name.starts_with(prefix)) return -1;
  const auto [end, error] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
  return error == std::errc{} && end == name.data() + name.size() ? number : -1;
}

// The folders of /proc/driver/nvidia/gpus, by PCI address.
std::vector<fs::path> gpu_folders() {
  std::error_code ignored;
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", ignored))
    folders.push_back(entry.path());
  std::ranges::sort(folders);
  return folders;
}

bool says(const fs::path& file, std::string_view what) {
  std::ifstream text(file);
  const std::string all(std::istreambuf_iterator<char>(text), {});
  return all.find(what) != std::string::npos;
}

}  // namespace

int node_of_cpu(int cpu) {
  std::error_code ignored;  // without NUMA there is no such folder, and one node
  for (const fs::directory_entry& entry :
       fs::directory_iterator(concat("/sys/devices/system/cpu/cpu", cpu), ignored))
    if (const int node = number_after("node", entry.path().filename().string()); node >= 0) return node;
  return 0;
}

std::optional<int> node_of_gpu(std::string_view name) {
  const std::vector<fs::path> folders = gpu_folders();
  const int number = number_after("", name);
  for (size_t i = 0; i < folders.size(); ++i) {
    const bool is_it = number >= 0 ? static_cast<size_t>(number) == i
                                   : name.starts_with("GPU-") && says(folders[i] / "information", name);
    if (!is_it) continue;
    std::ifstream file(fs::path("/sys/bus/pci/devices") / folders[i].filename() / "numa_node");
    int node = -1;  // what the kernel says when it does not know
    if (file >> node && node >= 0) return node;
  }
  return std::nullopt;
}

std::vector<int> usable_cpus() {
  cpu_set_t mine;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) return cpus;
  std::map<int, int> nodes;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mine)) continue;
    cpus.push_back(cpu);
    nodes[cpu] = node_of_cpu(cpu);
  }
  std::ranges::stable_sort(cpus, {}, [&](int cpu) { return nodes[cpu]; });
  return cpus;
}

int64_t resident_bytes_of(pid_t pid) {
  std::ifstream file(concat("/proc/", pid, "/statm"));
  int64_t all_pages = 0, resident_pages = 0;
  file >> all_pages >> resident_pages;
  return file ? resident_pages * sysconf(_SC_PAGESIZE) : 0;
}

int visible_gpus() {
  std::error_code ignored;
  int count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator("/dev", ignored))
    if (number_after("nvidia", entry.path().filename().string()) >= 0) ++count;
  return count;
}

}  // namespace shoal::fleet
