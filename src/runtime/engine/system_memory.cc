#include "runtime/engine/system_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <unistd.h>

namespace shoal::runtime {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

int64_t number_in(const char* path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? value : kUnknown;  // "max" does not parse as a number
}

int64_t system_available() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  int64_t kib = 0;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kib * 1024;
  }
  return kUnknown;
}

// Cached files of the group: counted as used, given up when memory is asked for.
int64_t reclaimable() {
  std::ifstream file("/sys/fs/cgroup/memory.stat");
  std::string key;
  int64_t bytes = 0, value = 0;
  while (file >> key >> value)
    if (key == "inactive_file" || key == "active_file") bytes += value;
  return bytes;
}

int64_t group_available() {
  const int64_t limit = number_in("/sys/fs/cgroup/memory.max");
  const int64_t used = number_in("/sys/fs/cgroup/memory.current");
  if (limit == kUnknown || used == kUnknown) return kUnknown;
  return std::max<int64_t>(0, limit - used + reclaimable());
}

}  // namespace

int64_t available_memory() { return std::min(system_available(), group_available()); }

int64_t resident_memory() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace shoal::runtime
