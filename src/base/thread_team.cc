#include "base/thread_team.h"

#include <algorithm>
#include <sched.h>

#include "base/error.h"

namespace shoal {
namespace {

// About 40 us on current x86: longer than the gaps between the regions of one decode step, shorter than a
// time slice.
constexpr int kSpins = 4000;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

int ThreadTeam::available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return std::max(1u, std::thread::hardware_concurrency());
  return std::max(1, CPU_COUNT(&set));
}

ThreadTeam::ThreadTeam(int threads) {
  CHECK(threads >= 0 && threads <= 1024, "threads ", threads);
  if (threads == 0) threads = available_cpus();
  for (int worker = 1; worker < threads; ++worker) workers_.emplace_back([this, worker] { work(worker, 0); });
}

ThreadTeam::~ThreadTeam() {
  stopping_.store(true, std::memory_order_relaxed);
  region_.fetch_add(1, std::memory_order_seq_cst);
  region_.notify_all();
  for (std::thread& thread : workers_) thread.join();
}

void ThreadTeam::call_guarded(int worker) {
  try {
    (*body_)(worker);
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

void ThreadTeam::work(int worker, uint32_t seen) {
  while (true) {
    for (int spin = 0; spin < kSpins && region_.load(std::memory_order_acquire) == seen; ++spin) pause();
    while (region_.load(std::memory_order_seq_cst) == seen) {
      parked_.fetch_add(1, std::memory_order_seq_cst);
      region_.wait(seen, std::memory_order_seq_cst);
      parked_.fetch_sub(1, std::memory_order_seq_cst);
    }
    seen = region_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    call_guarded(worker);
    pending_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadTeam::run(FunctionRef<void(int worker)> body) {
  if (workers_.empty()) return body(0);
  body_ = &body;
  pending_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  region_.fetch_add(1, std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst) > 0) region_.notify_all();
  call_guarded(0);
  for (int spin = 0; pending_.load(std::memory_order_acquire) > 0; ++spin) {
    // With the cores contended the straggler needs this one.
    if (spin < kSpins)
      pause();
    else
      sched_yield();
  }
  body_ = nullptr;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadTeam::parallel_for(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t, int)> body) {
  CHECK(grain > 0, "grain ", grain);
  if (count <= 0) return;
  if (count <= grain || workers_.empty()) {
    for (int64_t begin = 0; begin < count; begin += grain) body(begin, std::min(count, begin + grain), 0);
    return;
  }
  std::atomic<int64_t> next{0};
  run([&](int worker) {
    while (true) {
      const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= count) return;
      body(begin, std::min(count, begin + grain), worker);
    }
  });
}

}  // namespace shoal
