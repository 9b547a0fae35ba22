#include "tensor/device_memory.h"

#include <atomic>

namespace shoal::device_memory {
namespace {

std::atomic<int64_t> before_refusal{-1};

}  // namespace

void fail_allocation_after(int64_t allocations) { before_refusal = allocations; }

bool refuse_allocation() {
  if (before_refusal.load(std::memory_order_relaxed) < 0) return false;
  return before_refusal.fetch_sub(1) == 0;
}

}  // namespace shoal::device_memory
