#include "fleet/memory_share.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"

namespace shoal::fleet {
namespace {

std::string gigabytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GB", static_cast<double>(bytes) / 1e9);
  return text;
}

}  // namespace

std::vector<int64_t> share_memory(const DeviceMemory& device) {
  const auto count = static_cast<int64_t>(device.workers.size());
  int64_t free = 0, needed = (count - 1) * device.bytes_of_a_process, flexible = 0;
  for (const MemoryNeed& worker : device.workers) {
    free = std::max(free, worker.free_bytes);
    needed += worker.fixed_bytes;
    flexible += worker.flexible;
  }
  if (needed > free)
    fail(ErrorCode::invalid_argument, "memory: ", count, count == 1 ? " worker" : " workers", " on ",
         device.device, " would need at least ", gigabytes(needed), ", and ", gigabytes(free),
         " are free; expected fewer workers, or less for each (max_batch_size, kv_memory_mb)");
  std::vector<int64_t> shares;
  for (const MemoryNeed& worker : device.workers) {
    const auto most =
        flexible == 0 ? 0.0 : static_cast<double>(free - needed) / static_cast<double>(flexible);
    const auto share = static_cast<int64_t>(worker.fraction * most);
    shares.push_back(worker.flexible == 0 ? 0 : std::min(worker.most_bytes, share));
  }
  return shares;
}

}  // namespace shoal::fleet
