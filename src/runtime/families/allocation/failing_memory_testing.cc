#include "runtime/families/allocation/failing_memory_testing.h"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>
#include <utility>

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

std::atomic<int64_t> counted{0}, failed{0};
std::atomic<int64_t> first{kNever}, end{kNever};  // which fail, counted from 1
thread_local int spared = 0;

bool fails() noexcept {
  if (spared > 0) return false;
  const int64_t number = counted.fetch_add(1, std::memory_order_relaxed) + 1;
  if (number < first.load(std::memory_order_relaxed) || number >= end.load(std::memory_order_relaxed))
    return false;
  failed.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace

namespace shoal::testing {

void fail_allocations(int64_t n, int64_t count) {
  first.store(kNever);
  counted.store(0);
  failed.store(0);
  end.store(count < kNever - n ? n + count : kNever);
  first.store(n);
}
void fail_no_allocations() { fail_allocations(kNever, 0); }
int64_t allocations_counted() { return counted.load(); }
int64_t allocations_failed() { return failed.load(); }

Spared::Spared() { ++spared; }
Spared::~Spared() { --spared; }
NotSpared::NotSpared() : before_(std::exchange(spared, 0)) {}
NotSpared::~NotSpared() { spared = before_; }

}  // namespace shoal::testing

// Every form, for the address sanitizer has forms of its own that do not call these. free() takes what both
// malloc() and posix_memalign() gave.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return fails() ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  void* memory = nullptr;
  if (fails() || posix_memalign(&memory, static_cast<std::size_t>(alignment), bytes > 0 ? bytes : 1) != 0)
    return nullptr;
  return memory;
}
void* operator new(std::size_t bytes) {
  void* const memory = operator new(bytes, std::nothrow);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  void* const memory = operator new(bytes, alignment, std::nothrow);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) { return operator new(bytes, alignment); }
void* operator new[](std::size_t bytes, const std::nothrow_t& n) noexcept { return operator new(bytes, n); }
void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t& n) noexcept {
  return operator new(bytes, alignment, n);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept { std::free(memory); }

// The linker gives our own calls of aligned_alloc to this (--wrap): the memory of tensors.
extern "C" void* __real_aligned_alloc(std::size_t alignment, std::size_t bytes);
extern "C" void* __wrap_aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return fails() ? nullptr : __real_aligned_alloc(alignment, bytes);
}
