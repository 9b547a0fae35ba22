#include "tensor/device_memory.h"

namespace shoal::device_memory {
namespace {

[[noreturn]] void unavailable() {
  fail(ErrorCode::unavailable, "device memory: this build has no CUDA backend; use --device cpu");
}

}  // namespace

void* allocate(int64_t, int) { unavailable(); }
void* allocate_page_locked(int64_t, int) { unavailable(); }
void release(void*) noexcept {}
void release_page_locked(void*) noexcept {}
void copy(const void*, Device, void*, Device, int64_t) { unavailable(); }
void zero(void*, int, int64_t) { unavailable(); }

}  // namespace shoal::device_memory
