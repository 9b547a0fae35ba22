#include "runtime/engine/device_memory.h"

#include <cstdio>
#include <string>

#include "base/error.h"
#include "ops/device_state.h"
#include "runtime/engine/system_memory.h"

namespace shoal::runtime {
namespace {

constexpr int64_t kScratch = int64_t{32} << 20, kThreadScratch = int64_t{1} << 20;

std::string megabytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

}  // namespace

int64_t memory_available(Device device) {
  return ops::free_device_memory(device).value_or(available_memory());
}

int64_t op_scratch_bytes(Device device, int threads) {
  return ops::computes_by_itself(device) ? kScratch : threads * kThreadScratch;
}

void check_fits(std::span<const MemoryPart> parts, int64_t available) {
  int64_t total = 0;
  std::string list;
  for (const MemoryPart& part : parts) {
    total += part.bytes;
    list += concat(list.empty() ? "" : ", ", part.name, " ", megabytes(part.bytes));
  }
  if (total > available)
    fail(ErrorCode::resource_exhausted, "memory: ", megabytes(total), " are needed, but ",
         megabytes(available), " are free: ", list);
}

}  // namespace shoal::runtime
